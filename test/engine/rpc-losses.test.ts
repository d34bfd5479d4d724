// RPC workers that die while they are used: what that takes along, and how soon all is well again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventsOf, streamChat } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { onLoading, reachable, since, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";

test("a worker killed in mid-answer: an error frame, and the next answer comes without it", async (t) => {
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers);
  let killedAt = 0;
  let pieces = 0;
  const cut = await streamChat(gateway.url, gateway.model, "forever", () => {
    if (++pieces !== 5) return;
    killedAt = performance.now();
    void workers[1]?.kill();
  });
  const heard = since(killedAt);
  assert.equal(cut.done, false);
  assert.match(cut.error ?? "", /RPC worker|engine/);
  await gateway.until("noticed", (status) => reachable(status)[1]?.startsWith("False") === true);
  const noticed = since(killedAt);
  const told = eventsOf(gateway.gateway, "condition").map(({ data }) => data as Record<string, unknown>);
  const subject = `worker/${workers[1]?.address}`;
  const verdicts = told.filter((event) => event["subject"] === subject && event["type"] === "Reachable");
  assert.deepEqual(
    verdicts.map(({ status }) => status).filter((status) => status !== "Unknown"),
    ["True", "False"],
  );
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  const answered = since(killedAt);
  assert.deepEqual(await gateway.inPreset(), [workers[0]?.address]);
  assert.deepEqual(reachable(gateway.gateway.status())[0], "True Answering");
  t.diagnostic(`client told after ${heard}, noticed after ${noticed}, next answer after ${answered}`);

  await workers[1]?.start();
  const startedAt = performance.now();
  await gateway.until("back", (status) => reachable(status)[1] === "True Answering");
  await gateway.converged();
  assert.equal((await gateway.inPreset()).length, 2);
  t.diagnostic(`taken back after ${since(startedAt)} (1 s of answering asked)`);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});

test("a worker that was killed while its model was idle costs the next request nothing but time", async (t) => {
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  await gateway.until("used", ({ rpc }) => /"ServesModel"/.test(JSON.stringify(rpc.workers[1])));
  const killedAt = performance.now();
  await workers[1]?.kill();
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  t.diagnostic(`answered ${since(killedAt)} after the kill`);
});

test("a worker that is killed while a model is being loaded onto it costs the request nothing but time", async (t) => {
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers);
  let killedAt = 0;
  onLoading(gateway, () => {
    killedAt = performance.now();
    void workers[1]?.kill();
  });
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  assert.notEqual(killedAt, 0);
  t.diagnostic(`answered ${since(killedAt)} after the kill`);
  assert.deepEqual(await gateway.inPreset(), [workers[0]?.address]);
});
