// RPC workers that take connections and answer nothing: found out under an answer, or by the next one.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { streamChat } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { reachable, since, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";

/** Of a load under way it is the limit too, and on a busy machine a process may take seconds to start. */
const stall = ["--worker-stall", "20"];

describe("a worker", { concurrency: 2 }, () => {
  test("that hangs under an answer is found out by its silence", async (t) => {
    const workers = await startWorkers(t, 2);
    const gateway = await startRpcGateway(t, workers, { flags: stall });
    let stoppedAt = 0;
    let pieces = 0;
    const cut = await streamChat(gateway.url, gateway.model, "forever", () => {
      if (++pieces !== 5) return;
      stoppedAt = performance.now();
      workers[0]?.suspend();
    });
    t.diagnostic(`client told after ${since(stoppedAt)} (20 s of silence allowed)`);
    assert.match(cut.error ?? "", /hangs on one of its RPC workers/);
    assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
    t.diagnostic(`next answer after ${since(stoppedAt)}`);
    assert.deepEqual(reachable(gateway.gateway.status()), ["False NotAnswering", "True Answering"]);
    assert.deepEqual(await gateway.inPreset(), [workers[1]?.address]);
    const died = workers[0]?.ended().then(() => "died");
    workers[0]?.resume();
    const back = gateway.until("back", (status) => reachable(status)[0] === "True Answering");
    // Awake again it mostly dies, of answering the process that has been ended meanwhile: something has to start it again.
    if ((await Promise.race([back, died])) === "died") await workers[0]?.start();
    await back;
  });

  test("that hung while its model was idle costs the next request time, and no answer", async (t) => {
    const workers = await startWorkers(t, 2);
    const gateway = await startRpcGateway(t, workers, { flags: stall });
    assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
    workers[0]?.suspend();
    const asked = performance.now();
    const { text, done, error } = await streamChat(gateway.url, gateway.model, "hi");
    assert.deepEqual([text, done, error], [answersOf("acme/talker").hello, true, null]);
    t.diagnostic(`answered after ${since(asked)} (20 s of silence allowed)`);
  });
});
