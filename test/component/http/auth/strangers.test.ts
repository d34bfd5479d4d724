// What a stranger may hold: connections for a while, and not all of them; and that a key is asked for again.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { createReports, statusRoutes } from "../../../../src/http/admin/status.ts";
import { createAccess, installAccess } from "../../../../src/http/auth/access.ts";
import { installRoutes } from "../../../../src/http/server/route.ts";
import { createRequestMeters } from "../../../../src/metrics/requests.ts";
import { createWorkMeters } from "../../../../src/metrics/work.ts";
import type { StatusReport } from "../../../../src/status/report.ts";
import { cleanUp } from "../../../support/clean-up.ts";

interface Keys {
  required: boolean;
  readonly valid: Set<string>;
}

function appWith(t: TestContext, keys: Keys, loopback: boolean): FastifyInstance {
  const app = Fastify();
  cleanUp(t, () => app.close());
  const access = createAccess({
    keys: {
      areNone: () => false,
      areRequired: () => keys.required,
      scopeOf: (key) => (keys.valid.has(key) ? "all" : null),
      nameOf: (key) => key,
    },
    loopback,
    allowedHosts: [],
    corsOrigins: [],
  });
  installAccess(app, access, []);
  return app;
}

async function opened(t: TestContext, port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  cleanUp(t, () => void socket.destroy());
  socket.on("error", () => undefined);
  socket.resume();
  await once(socket, "connect");
  return socket;
}

test("a request that goes on for long is asked for its key again", async (t) => {
  const keys: Keys = { required: false, valid: new Set(["one", "two"]) };
  const app = appWith(t, keys, true);
  const seen: FastifyRequest[] = [];
  app.get("/", (request) => {
    seen.push(request);
    return {};
  });
  await app.inject({ url: "/", headers: { "x-license-key": "one" } });
  await app.inject({ url: "/" });
  const [keyed, keyless] = seen;
  assert.ok(keyed && keyless);
  assert.deepEqual([keyed.isStillAllowed(), keyless.isStillAllowed()], [true, true]);
  keys.required = true;
  assert.deepEqual([keyed.isStillAllowed(), keyless.isStillAllowed()], [true, false]);
  keys.valid.delete("one");
  assert.deepEqual([keyed.isStillAllowed(), keyless.isStillAllowed()], [false, false]);
  keys.required = false;
  assert.deepEqual([keyed.isStillAllowed(), keyless.isStillAllowed()], [true, true]);
});

test("elsewhere than on loopback the last key's end is everybody's", async (t) => {
  const keys: Keys = { required: true, valid: new Set(["one"]) };
  const app = appWith(t, keys, false);
  let held: FastifyRequest | undefined;
  app.get("/", (request) => {
    held = request;
    return {};
  });
  await app.inject({ url: "/", headers: { authorization: "Bearer one" } });
  assert.equal(held?.isStillAllowed(), true);
  keys.required = false;
  keys.valid.clear();
  assert.equal(held?.isStillAllowed(), false);
});

test("a stranger's body that does not come ends with its connection; one of somebody with a key may be slow", async (t) => {
  const app = appWith(t, { required: true, valid: new Set(["one"]) }, true);
  const begun: (() => void)[] = [];
  app.addHook("preParsing", (_request, _reply, _payload, done) => {
    begun.shift()?.();
    done();
  });
  app.post("/", { config: { licenseKey: "none" } }, () => ({}));
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const send = async (headers: string): Promise<Socket> => {
    const socket = await opened(t, port);
    const isBegun = new Promise<void>((resolve) => begun.push(resolve));
    socket.write(
      `POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 9\r\n${headers}\r\n{`,
    );
    await isBegun;
    return socket;
  };
  const keyed = await send("x-license-key: one\r\n");
  const stranger = await send("");
  const closed = once(stranger, "close");
  t.mock.timers.tick(31_000);
  await closed;
  const answered = once(keyed, "data");
  keyed.write('"a": 10}');
  const [bytes] = (await answered) as [Buffer];
  assert.match(bytes.toString(), /^HTTP\/1\.1 200 /);
});

test("strangers share a report on the state; somebody with a key has a new one", async (t) => {
  const app = appWith(t, { required: true, valid: new Set(["one"]) }, true);
  let now = 0;
  let made = 0;
  const reportFor = createReports(
    () => {
      made++;
      return { conditions: made > 1 ? [{ type: "RouterReady", status: "True" }] : [] } as unknown as StatusReport;
    },
    () => now,
  );
  installRoutes(app, "own", statusRoutes, {
    reportFor,
    stopping: new AbortController().signal,
    meters: { requests: createRequestMeters(), work: createWorkMeters() },
    catalog: { find: () => undefined, view: () => undefined },
    router: { instances: { get: () => null } },
    scheduler: { slots: () => ({ takes: () => null, evicts: () => null }) },
    idOf: (id) => id,
  });
  const readiness = async (headers: Record<string, string> = {}): Promise<number> =>
    (await app.inject({ url: "/readyz", headers })).statusCode;
  assert.deepEqual([await readiness(), await readiness(), made], [503, 503, 1]);
  assert.deepEqual([await readiness({ "x-license-key": "one" }), made], [200, 2]);
  assert.deepEqual([await readiness(), made], [200, 2]);
  now += 500;
  assert.deepEqual([await readiness(), made], [200, 3]);
});
