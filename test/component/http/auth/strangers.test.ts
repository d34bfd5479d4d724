// What a stranger may hold: connections for a while, and not all of them; and that a key is asked for again.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { createAccess, installAccess } from "../../../../src/http/auth/access.ts";
import type { Network } from "../../../../src/settings/networks.ts";
import { cleanUp } from "../../../support/clean-up.ts";

interface Keys {
  required: boolean;
  readonly valid: Set<string>;
}

function appWith(t: TestContext, keys: Keys, loopback: boolean, ...open: readonly Network[]): FastifyInstance {
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
    allowedHosts: ["gateway-1"],
    corsOrigins: [],
    metricsOpen: open,
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

test("a client of an open network reads the metrics without a key, and nothing else", async (t) => {
  const keys = { required: true, valid: new Set(["one"]) };
  const app = appWith(t, keys, false, { address: "10.0.0.0", bits: 8 });
  app.get("/metrics", { config: { licenseKey: "network" } }, () => "metrics");
  app.get("/status", () => "status");
  const host = "10.0.0.5:8484";
  const asked = async (remoteAddress: string, headers: Record<string, string> = {}, url = "/metrics") =>
    (await app.inject({ url, remoteAddress, headers: { host, ...headers } })).statusCode;
  for (const client of ["10.1.2.3", "::ffff:10.1.2.3"]) assert.equal(await asked(client), 200, client);
  for (const client of ["203.0.113.9", "::ffff:203.0.113.9", "fd00::1", "127.0.0.1"])
    assert.equal(await asked(client), 401, client);
  assert.equal(await asked("10.1.2.3", {}, "/status"), 401);
  assert.equal(await asked("203.0.113.9", { "x-license-key": "one" }), 200, "a key opens it everywhere");
  // What a client writes of itself counts for nothing.
  for (const name of ["x-forwarded-for", "forwarded", "x-real-ip"])
    assert.equal(await asked("203.0.113.9", { [name]: name === "forwarded" ? "for=10.1.2.3" : "10.1.2.3" }), 401, name);
  // A page of another site, whose name was made to lead here, asks by that name.
  assert.equal(await asked("10.1.2.3", { host: "evil.example" }), 401);
  assert.equal(await asked("10.1.2.3", { host: "evil.example", "x-license-key": "one" }), 200);
  for (const name of ["gateway-1:8484", "localhost:8484", "[fd00::5]:8484", "10.0.0.5"])
    assert.equal(await asked("10.1.2.3", { host: name }), 200, name);
});
