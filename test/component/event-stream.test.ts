// The event stream ends with the license key that opened it, and with a reader that does not read.
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import Fastify from "fastify";
import { createEventStreams } from "../../src/http/gateway/events.ts";
import { createJournal, type Journal } from "../../src/status/journal.ts";
import { cleanUp } from "../support/clean-up.ts";
import { rawClient, rawGet } from "../support/raw-client.ts";

interface Streams {
  readonly url: string;
  readonly journal: Journal;
  /** Bytes that wait for the reader that is furthest behind. */
  unread(): number;
}

async function start(t: TestContext, isLicensed: () => boolean): Promise<Streams> {
  const journal = createJournal(Date.now);
  const app = Fastify({ forceCloseConnections: true });
  app.decorateRequest("stillLicensed", () => isLicensed());
  const cutOff = new AbortController().signal;
  app.get("/api/events", createEventStreams({ journal, most: 2, cutOff, everyMs: 5 }));
  const sockets: Socket[] = [];
  app.server.on("connection", (socket: Socket) => void sockets.push(socket));
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  cleanUp(t, () => app.close());
  return { url, journal, unread: () => Math.max(...sockets.map((socket) => socket.writableLength)) };
}

test("a stream whose key is revoked ends at its next sign of life, with a word why, and no event after it", async (t) => {
  let licensed = true;
  const { url, journal } = await start(t, () => {
    // In the turn of the loop in which the stream ends: its connection is not closed yet.
    if (!licensed) queueMicrotask(() => journal.record("document", { generation: 2 }));
    return licensed;
  });
  const response = await fetch(`${url}/api/events`);
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (licensed && text.includes(": keep-alive")) {
      journal.record("document", { generation: 1 });
      licensed = false;
    }
  }
  assert.match(text, /: keep-alive\n\n[^]*event: document\n[^]*\n\n: the license key is not valid any more\n\n$/);
});

test("a reader that does not read is told no more, and why; others are; beyond the limit there is no place", async (t) => {
  const { url, journal, unread } = await start(t, () => true);
  const deaf = await rawClient(t, url);
  deaf.socket.pause();
  deaf.send(rawGet("/api/events"));
  const reader = await rawClient(t, url);
  reader.send(rawGet("/api/events"));
  await reader.until(/: from 0/);
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
  await fourth.until(/: from 400/);
  deaf.socket.resume();
  await deaf.until(/: you are too far behind; come back with Last-Event-ID\n\n/);
});
