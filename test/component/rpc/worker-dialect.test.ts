// The real engine is asked which workers it takes, by a hello that is repeated to it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorkerDialect } from "../../../src/rpc/worker-dialect.ts";
import { speak } from "../../../src/rpc/worker-wire.ts";
import { llamaServer } from "../../support/engine.ts";
import { startWorkers } from "../../support/rpc-worker.ts";
import { scratchFolder } from "../../support/scratch.ts";

test("it takes a real worker's hello, and refuses that of another version, once and for all", async (t) => {
  const [worker] = await startWorkers(t, 1);
  const heard = await speak({ host: "127.0.0.1", port: Number(worker?.address.split(":")[1]) }, 10_000);
  assert.ok(heard.kind === "answered");
  const path = await llamaServer();
  const stateDir = await scratchFolder(t);
  const dialect = createWorkerDialect({ binary: () => path, environment: process.env, stateDir });
  const real = heard.facts.greeting;
  const startedAt = performance.now();
  assert.equal(await dialect.takes(real), true);
  const asked = performance.now() - startedAt;
  for (const major of [99, 1]) {
    const other = Buffer.from(real);
    other[0] = major;
    assert.equal(await dialect.takes(other), false, String(major));
  }
  const again = performance.now();
  assert.equal(await dialect.takes(real), true);
  assert.ok(performance.now() - again < asked);
  t.diagnostic(`the engine was asked within ${Math.round(asked)} ms`);
});

test("where there is no engine nobody knows", async (t) => {
  const stateDir = await scratchFolder(t);
  for (const path of [null, "/nonexistent/llama-server"]) {
    const dialect = createWorkerDialect({ binary: () => path, environment: {}, stateDir });
    assert.equal(await dialect.takes(Buffer.alloc(28)), null);
  }
  // One that ends without having said a word has not refused anybody.
  const mute = createWorkerDialect({ binary: () => "/bin/true", environment: {}, stateDir });
  assert.equal(await mute.takes(Buffer.alloc(28)), null);
});
