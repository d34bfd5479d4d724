// The event stream ends with the license key that opened it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import Fastify from "fastify";
import { createEventStreams } from "../../src/http/gateway/events.ts";
import { createJournal, type Journal } from "../../src/status/journal.ts";
import { cleanUp } from "../support/clean-up.ts";

async function start(t: TestContext, isLicensed: () => boolean): Promise<{ url: string; journal: Journal }> {
  const journal = createJournal(Date.now);
  const app = Fastify({ forceCloseConnections: true });
  app.decorateRequest("stillLicensed", () => isLicensed());
  const cutOff = new AbortController().signal;
  app.get("/api/events", createEventStreams({ journal, most: 2, cutOff, everyMs: 5 }));
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  cleanUp(t, () => app.close());
  return { url, journal };
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
