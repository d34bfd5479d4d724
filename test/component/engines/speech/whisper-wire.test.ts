// Which answers to the probe of whisper-server are its own.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { isReady } from "../../../../src/engines/speech/whisper-wire.ts";
import { cleanUp } from "../../../support/clean-up.ts";

/** Whether a server that answers with these statuses, and 404 to all else, counts as ready. */
async function isReadyWith(t: TestContext, statuses: Readonly<Record<string, number>>): Promise<boolean> {
  const server = createServer(({ url = "" }, response) => response.writeHead(statuses[url] ?? 404).end());
  server.listen(0, "127.0.0.1");
  cleanUp(t, () => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return isReady(`http://127.0.0.1:${port}/secret`, new AbortController().signal);
}

test("whisper-server is ready when it says so, or by its page where it cannot; another program on its port is not it", async (t) => {
  assert.equal(await isReadyWith(t, { "/secret/health": 200 }), true);
  assert.equal(await isReadyWith(t, { "/secret/health": 503, "/secret/": 200 }), false);
  assert.equal(await isReadyWith(t, { "/secret/": 200 }), true);
  assert.equal(await isReadyWith(t, { "/health": 200, "/": 200 }), false);
});
