// What a worker's name means: public addresses are refused, slow names hold up nobody, and several addresses are one worker.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createResolver, type Resolver } from "../../../src/rpc/worker-target.ts";
import { WorkerFault } from "../../../src/rpc/worker-wire.ts";

const fresh = { held: null, allowPublic: false } as const;

function reasonOf(resolve: Resolver, address: string, allowPublic = false): Promise<string> {
  return resolve(address, { held: null, allowPublic }).then(
    ({ host, port }) => `${host}:${port}`,
    (error: unknown) => (error instanceof WorkerFault ? `${error.reason}: ${error.message}` : String(error)),
  );
}

test("names are judged by what they mean", async () => {
  const names: Readonly<Record<string, readonly string[]>> = {
    "gpu.local": ["10.0.0.7"],
    outside: ["10.0.0.7", "203.0.113.9"],
    blocked: ["0.0.0.0"],
    "six.local": [],
  };
  const resolve = createResolver(async (host) => names[host] ?? Promise.reject(new Error("unknown")));
  assert.equal(await reasonOf(resolve, "gpu.local:1"), "10.0.0.7:1");
  assert.match(await reasonOf(resolve, "outside:1"), /^PublicAddress: outside is 203\.0\.113\.9, a public address/);
  assert.equal(await reasonOf(resolve, "outside:1", true), "10.0.0.7:1");
  assert.match(await reasonOf(resolve, "blocked:1", true), /^Invalid: blocked is 0\.0\.0\.0, no address of a single/);
  assert.match(await reasonOf(resolve, "six.local:1"), /has no IPv4 address/);
  assert.match(await reasonOf(resolve, "nobody:1"), /nobody cannot be resolved/);
});

test("of several addresses the one in use stays", async () => {
  const resolve = createResolver(async () => ["10.0.0.2", "10.0.0.1"]);
  const held = { host: "10.0.0.1", port: 1 };
  assert.equal(await resolve("gpu:1", { held, allowPublic: false }), held);
  assert.deepEqual(await resolve("gpu:2", { held, allowPublic: false }), { host: "10.0.0.1", port: 2 });
});

test("a name service that hangs holds up no address, and a late answer is there for the next look", async () => {
  const answers = new Map<string, (addresses: readonly string[]) => void>();
  const resolve = createResolver((host) => new Promise((done) => answers.set(host, done)));
  const hung = reasonOf(resolve, "hung:1");
  assert.deepEqual(await resolve("10.0.0.1:1", fresh), { host: "10.0.0.1", port: 1 });
  assert.match(await hung, /hung cannot be resolved: the name service is slow/);
  answers.get("hung")?.(["10.0.0.9"]);
  assert.equal(await reasonOf(resolve, "hung:1"), "10.0.0.9:1");
  assert.equal(answers.size, 1);
});
