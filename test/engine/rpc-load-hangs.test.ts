// RPC workers that take connections and answer nothing: found out before a load, and during one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answersOf } from "../support/models.ts";
import { onLoading, reachable, since, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";

test("a worker that hangs before a load costs it seconds, and it loads without it", async (t) => {
  const workers = await startWorkers(t, 2);
  // Nobody looks before the load does.
  const gateway = await startRpcGateway(t, workers, { flags: ["--worker-interval", "60"] });
  workers[1]?.suspend();
  const asked = performance.now();
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  t.diagnostic(`answered after ${since(asked)}`);
  assert.deepEqual(reachable(gateway.gateway.status()), ["True Answering", "False NotAnswering"]);
  // It was never left with a question unanswered, so it lives on, and is used again.
  workers[1]?.resume();
  await gateway.until("answering", (status) => /Stabilizing/.test(reachable(status)[1] ?? ""));
});

test("a worker that hangs while a model is being loaded onto it is found out, and it loads without it", async (t) => {
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers, { flags: ["--worker-stall", "10"] });
  let stoppedAt = 0;
  onLoading(gateway, () => {
    stoppedAt = performance.now();
    workers[1]?.suspend();
  });
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  t.diagnostic(`answered ${since(stoppedAt)} after it stopped (10 s of silence allowed)`);
  assert.deepEqual(await gateway.inPreset(), [workers[0]?.address]);
});
