// An upload that waits in line outlives the server's time for a request.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import { test } from "node:test";
import Fastify from "fastify";
import { grantTime, serverOptions } from "../../../../src/http/server/server-limits.ts";
import { cleanUp } from "../../../support/clean-up.ts";

test("an upload that is not read for longer than a request may take is read in the end; another is ended", async (t) => {
  const times = { headerTimeoutMs: 200, requestTimeoutMs: 200, idleTimeoutMs: 60_000, writeStallMs: 60_000 };
  const app = Fastify(serverOptions({ ...times, headerLimit: 16_384, maxConnections: 10 }));
  let refuse = (): void => undefined;
  const refused = new Promise<void>((resolve) => {
    refuse = resolve;
  });
  app.server.on("clientError", () => refuse());
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  app.post("/patient", async ({ raw }) => {
    const over = grantTime(raw.socket);
    // Until the other connection's time is up, which began later.
    await refused;
    let bytes = 0;
    for await (const chunk of raw as AsyncIterable<Buffer>) bytes += chunk.length;
    over();
    return { bytes };
  });
  app.post("/other", async ({ raw }) => {
    for await (const _chunk of raw);
    return {};
  });
  cleanUp(t, () => app.close());
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const begin = (path: string): ReturnType<typeof request> => {
    const call = request({ port, path, method: "POST", headers: { "content-length": 10 } });
    call.write("begun");
    return call;
  };
  const patient = begin("/patient");
  const answered = once(patient, "response");
  await once(app.server, "request");
  const other = begin("/other");
  const outcome = new Promise<number>((resolve) => {
    other.on("response", ({ statusCode }) => resolve(statusCode ?? 0));
    other.on("error", () => resolve(408));
  });
  await refused;
  assert.equal(await outcome, 408);
  patient.end("ended");
  const [response] = (await answered) as [Readable & { statusCode: number }];
  assert.equal(response.statusCode, 200);
  assert.deepEqual(JSON.parse(Buffer.concat(await response.toArray()).toString()), { bytes: 10 });
});
