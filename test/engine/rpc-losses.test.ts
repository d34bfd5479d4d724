// RPC workers that die, hang, or come and go while they are used: what that takes along, and how soon all is well again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { streamChat } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { reachable, reloads, rpcDocument, since, startRpcGateway } from "../support/rpc-gateway.ts";
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
  const told = since(killedAt);
  assert.equal(cut.done, false);
  assert.match(cut.error ?? "", /RPC worker|engine/);
  await gateway.until("noticed", (status) => reachable(status)[1]?.startsWith("False") === true);
  const noticed = since(killedAt);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  const answered = since(killedAt);
  assert.deepEqual(await gateway.inPreset(), [workers[0]?.address]);
  assert.deepEqual(reachable(gateway.gateway.status())[0], "True Answering");
  t.diagnostic(`client told after ${told}, noticed after ${noticed}, next answer after ${answered}`);

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

test("a worker that hangs is found out: before a load at once, under an answer by its silence", async (t) => {
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers, { flags: ["--worker-stall", "1"] });
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

test("a worker that comes and goes costs few reloads, and is told of as flapping", async (t) => {
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers);
  const before = reloads(gateway);
  for (let round = 0; round < 4; round++) {
    await workers[1]?.kill();
    await gateway.until("away", (status) => reachable(status)[1]?.startsWith("False") === true);
    await workers[1]?.start();
    await gateway.until("answering again", (status) =>
      /Stabilising|Flapping|Answering/.test(reachable(status)[1] ?? ""),
    );
  }
  await gateway.until("flapping", (status) => reachable(status)[1] === "False Flapping");
  assert.ok(reloads(gateway) - before <= 2, `${reloads(gateway) - before} reloads`);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});

test("a roster edited under load, by file and by API at once, cuts no answer", async (t) => {
  const workers = await startWorkers(t, 3);
  const [a, b, c] = workers;
  assert.ok(a && b && c);
  const gateway = await startRpcGateway(t, [a]);
  const before = reloads(gateway);
  const answers = Promise.all(
    [1, 2, 3].map(() => streamChat(gateway.url, gateway.model, "long")),
  );
  const add = gateway.json("/api/rpc/workers", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ worker: b.address }),
  });
  await gateway.writeConfig(rpcDocument([a, c]));
  for (const { done, text, error } of await answers) {
    assert.deepEqual([error, done], [null, true]);
    assert.equal(text, answersOf("acme/talker").long);
  }
  const { status } = await add;
  assert.equal(status, 200);
  await gateway.converged();
  const roster = await gateway.inPreset();
  assert.ok(roster.includes(a.address) && roster.includes(c.address), roster.join());
  assert.ok(reloads(gateway) - before <= 2);
  t.diagnostic(`${roster.length} workers after ${reloads(gateway) - before} reloads`);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});
