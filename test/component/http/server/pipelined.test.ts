// A client that pipelines requests and leaves: each of its responses is closed, or their models would compute on.
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { RawReply } from "../../../../src/http/server/raw-reply.ts";
import { limitSilence } from "../../../../src/http/server/server-limits.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { rawClient } from "../../../support/raw-client.ts";
import { until } from "../../../support/scratch.ts";

test("a client that leaves takes its pipelined requests along", async (t) => {
  const server = createServer();
  limitSilence(server, 60_000);
  const replies: RawReply[] = [];
  let left = 0;
  server.on("request", (_request, response: ServerResponse) => {
    replies.push(new RawReply(response, { drained: () => undefined, left: () => left++ }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp(t, () => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;

  const client = await rawClient(t, `http://127.0.0.1:${port}`);
  client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(4));
  await until("all requests have come", () => replies.length === 4);
  // The first two are whole: the second of them waited for its turn on the connection.
  for (const reply of replies.slice(0, 2)) reply.answer(200, "done", {});
  await client.until(/done[^]*done/);
  client.socket.destroy();
  await until("the other two are closed", () => left === 2);
  assert.deepEqual(
    replies.map((reply) => reply.hasLeft()),
    [false, false, true, true],
  );
});
