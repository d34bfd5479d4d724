// The event stream ends with the license key that opened it, and with a reader that does not read.
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import Fastify from "fastify";
import { createEventStreams } from "../../../../src/http/admin/events.ts";
import { createJournal, type Journal } from "../../../../src/status/journal.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { rawClient, rawGet } from "../../../support/raw-client.ts";

interface Streams {
  readonly url: string;
  readonly journal: Journal;
  /** Bytes that wait for the reader that is furthest behind. */
  unread(): number;
}

async function start(t: TestContext, isAllowed: () => boolean, everyMs = 5): Promise<Streams> {
  const journal = createJournal(Date.now, "run");
  const app = Fastify({ forceCloseConnections: true });
  app.decorateRequest("isStillAllowed", () => isAllowed());
  const cutOff = new AbortController().signal;
  app.get("/api/events", createEventStreams({ journal, most: 2, cutOff, everyMs }));
  const sockets: Socket[] = [];
  app.server.on("connection", (socket: Socket) => void sockets.push(socket));
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  cleanUp(t, () => app.close());
  return { url, journal, unread: () => Math.max(...sockets.map((socket) => socket.writableLength)) };
}

/** The stream's text, from `": from"` to its end; `onText` sees what has come so far. */
async function readToEnd(url: string, onText: (text: string) => void): Promise<string> {
  const response = await fetch(`${url}/api/events`);
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    onText(text);
  }
  return text;
}

const ending = ": the license key is no longer valid\n\n";

test("a stream whose key is revoked ends before the next event, with a comment why, and no event after it", async (t) => {
  let allowed = true;
  const { url, journal } = await start(t, () => {
    // In the turn of the loop in which the stream ends: its connection is not closed yet.
    if (!allowed) queueMicrotask(() => journal.record("document", { generation: 3 }));
    return allowed;
  });
  const text = await readToEnd(url, (so) => {
    if (!allowed || !so.includes(": keep-alive")) return;
    journal.record("document", { generation: 1 });
    allowed = false;
    journal.record("document", { generation: 2 });
  });
  assert.ok(text.endsWith(`"generation":1}\n\n${ending}`), text);
});

test("a stream on which nothing happens ends within a second of its key", async (t) => {
  let revokedAt = 0;
  const { url } = await start(t, () => revokedAt === 0, 60_000);
  const text = await readToEnd(url, () => {
    revokedAt = performance.now();
  });
  assert.equal(text, `: from run-0\n\n${ending}`);
  assert.ok(performance.now() - revokedAt < 50_000, "far sooner than the next sign of life");
});

test("a reader that comes back gets what it missed, and is told first where that is not all of it", async (t) => {
  const { url, journal } = await start(t, () => true);
  for (let generation = 1; generation <= 3; generation++) journal.record("document", { generation });
  const cases: readonly (readonly [asked: string, types: readonly string[]])[] = [
    ["/api/events?since=run-2", ["document"]],
    ["/api/events?since=0", ["document", "document", "document"]],
    // Of the run before, and as ids were before they named a run.
    ["/api/events?since=earlier-2", ["reset", "document", "document", "document"]],
    ["/api/events?since=2", ["reset", "document", "document", "document"]],
  ];
  for (const [path, types] of cases) {
    const reader = await rawClient(t, url);
    reader.send(rawGet(path));
    const text = await reader.until(/"generation":3\}\n\n/);
    assert.deepEqual(
      [...text.matchAll(/^event: (.+)$/gm)].map(([, type]) => type),
      types,
      path,
    );
    reader.socket.destroy();
    await reader.ended();
  }
  const reader = await rawClient(t, url);
  reader.send(rawGet("/api/events", "last-event-id: earlier-7\r\n"));
  assert.match(
    await reader.until(/"generation":3\}\n\n/),
    /^id: run-0\nevent: reset\ndata: \{"at":"[^"]+"\}\n\nid: run-1\n/m,
  );
});

test("a reader that does not read is told no more, and why; others are; beyond the limit there is no place", async (t) => {
  const { url, journal, unread } = await start(t, () => true);
  const deaf = await rawClient(t, url);
  deaf.socket.pause();
  deaf.send(rawGet("/api/events"));
  const reader = await rawClient(t, url);
  reader.send(rawGet("/api/events"));
  await reader.until(/: from run-0/);
  const third = await fetch(`${url}/api/events`);
  assert.deepEqual([third.status, ((await third.json()) as { code: string }).code], [503, "busy"]);

  const padding = "x".repeat(1 << 16);
  let most = 0;
  // Far more than the kernel keeps for a connection.
  for (let generation = 1; generation <= 400; generation++) {
    journal.record("document", { padding, generation });
    await reader.until(new RegExp(`"generation":${generation}\\D`));
    reader.forget();
    most = Math.max(most, unread());
  }
  assert.ok(most > 0 && most < 1 << 19, `${most} bytes for one reader`);
  // It left its place.
  const fourth = await rawClient(t, url);
  fourth.send(rawGet("/api/events"));
  await fourth.until(/: from run-400/);
  deaf.socket.resume();
  await deaf.until(/: you are too far behind; come back with Last-Event-ID\n\n/);
});
