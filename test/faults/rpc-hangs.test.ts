// RPC workers that take connections and answer nothing: found out under an answer, or by the next one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { streamChat } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { reachable, since, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";
import { until } from "../support/scratch.ts";

test("a worker that hangs under an answer is found out by its silence", async (t) => {
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers, { flags: ["--worker-stall", "1"] });
  // On a busy machine a worker may miss a probe at first, and the model loads without it.
  await until("both are in use", async () => (await gateway.inPreset()).length === 2);
  let stoppedAt = 0;
  let pieces = 0;
  const cut = await streamChat(gateway.url, gateway.model, "forever", () => {
    if (++pieces !== 5) return;
    stoppedAt = performance.now();
    workers[0]?.suspend();
  });
  t.diagnostic(`client told after ${since(stoppedAt)} (1 s of silence allowed)`);
  assert.match(cut.error ?? "", /hangs on one of its RPC workers/);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  t.diagnostic(`next answer after ${since(stoppedAt)}`);
  assert.deepEqual(reachable(gateway.gateway.status()), ["False NotAnswering", "True Answering"]);
  assert.deepEqual(await gateway.inPreset(), [workers[1]?.address]);
  // Awake again it dies, of answering the process that has been ended meanwhile: something has to start it again.
  workers[0]?.resume();
  await workers[0]?.ended();
  await workers[0]?.start();
  await gateway.until("back", (status) => reachable(status)[0] === "True Answering");
});

test("a worker that hung while its model was idle costs the next request time, and no answer", async (t) => {
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers, { flags: ["--worker-stall", "1"] });
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  workers[0]?.suspend();
  const asked = performance.now();
  const { text, done, error } = await streamChat(gateway.url, gateway.model, "hi");
  assert.deepEqual([text, done, error], [answersOf("acme/talker").hello, true, null]);
  t.diagnostic(`answered after ${since(asked)} (1 s of silence allowed)`);
});
