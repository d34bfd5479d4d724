// RPC mode on real workers: models run with them, one at a time, and without them again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway, untilLoaded } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { postWith } from "../support/requests.ts";
import { reachable, rpcDocument, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";

test("models run with the workers, one at a time, and without them again", async (t) => {
  const folders = await makeFolders(t);
  const [first, second] = [await cacheTalker(folders, "acme/first"), await cacheTalker(folders, "acme/second")];
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers, { folders });
  const { rpc, router } = gateway.gateway.status();
  assert.deepEqual(reachable(gateway.gateway.status()), ["True Answering", "True Answering"]);
  assert.match(rpc.warning ?? "", /without password or encryption/);
  for (const worker of rpc.workers) {
    assert.match(worker.version ?? "", /^\d+\.\d+\.\d+$/);
    assert.ok((worker.devices?.[0]?.totalBytes ?? 0) > 1e6);
    assert.ok((worker.latencyMs ?? -1) >= 0);
  }
  assert.deepEqual(
    await gateway.inPreset(),
    workers.map(({ address }) => address),
  );

  assert.equal(await gateway.ask(first), answersOf("acme/first").hello);
  assert.equal(await gateway.ask(second), answersOf("acme/second").hello);
  await untilLoaded(gateway, second);
  // Not by the first one any more, which it may say for a moment.
  await gateway.until("used by the second", ({ rpc: { workers: seen } }) =>
    seen.every(({ conditions }) =>
      conditions.some(({ type, status, message }) => type === "InUse" && status === "True" && message.includes(second)),
    ),
  );
  // Twice as often as the waiting room has places: a silent connection stays, and no other is made.
  const accepted = workers.map((worker) => worker.accepted());
  await gateway.until("looked at", (status) => status.rpc.workers.length === 2);
  assert.equal(await gateway.ask(second), answersOf("acme/second").hello);
  assert.deepEqual(
    workers.map((worker) => worker.accepted()),
    accepted,
  );

  await gateway.writeConfig("version: 1\n");
  const single = await gateway.until("single", (status) => status.rpc.mode === "single" && status.sync === "Synced");
  assert.equal(single.router.pid, router.pid);
  assert.equal(single.rpc.warning, null);
  assert.equal(await gateway.ask(first), answersOf("acme/first").hello);
});

test("a worker that is down keeps nothing from starting, and is used once it is there", async (t) => {
  const workers = await startWorkers(t, 2);
  await workers[1]?.kill();
  const gateway = await startRpcGateway(t, workers, { answering: 1 });
  assert.deepEqual(reachable(gateway.gateway.status()), ["True Answering", "False Refused"]);
  assert.deepEqual(await gateway.inPreset(), [workers[0]?.address]);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  await workers[1]?.start();
  await gateway.until("both", (status) => reachable(status)[1] === "True Answering" && status.sync === "Synced");
  await gateway.converged();
  assert.equal((await gateway.inPreset()).length, 2);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});

test("without a worker models run on this machine; with minWorkers they are not loaded, and everybody is told", async (t) => {
  const folders = await makeFolders(t);
  const workers = await startWorkers(t, 1);
  await workers[0]?.kill();
  const gateway = await startRpcGateway(t, workers, { folders, answering: 0 });
  assert.deepEqual(await gateway.inPreset(), []);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  const alone = gateway.gateway.status().conditions.find(({ type }) => type === "WorkersReady");
  assert.deepEqual([alone?.status, alone?.reason], ["False", "WorkersMissing"]);

  await gateway.json("/api/eject-model", postWith({ model: gateway.model }));
  await gateway.writeConfig(rpcDocument(workers, ", minWorkers: 1"));
  const status = await gateway.until("too few", ({ conditions }) =>
    conditions.some(({ type, reason }) => type === "Ready" && reason === "TooFewWorkers"),
  );
  assert.equal(status.gateway.ready, false);
  const refused = await gateway.json(
    "/beta/v1/chat/completions",
    postWith({ model: gateway.model, messages: [{ role: "user", content: "hi" }] }),
  );
  assert.equal(refused.status, 503);
  assert.equal((refused.body["error"] as { code: string }).code, "too_few_workers");

  await workers[0]?.start();
  await gateway.until("ready", ({ gateway: { ready } }) => ready);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  assert.equal((await gateway.inPreset()).length, 1);
});

test("public addresses and numbers that the resolver takes for some are refused; a name that means nothing is told of", async (t) => {
  const gateway = await startTestGateway(t, { yaml: "version: 1\n", flags: ["--worker-interval", "0.2"] });
  await gateway.converged();
  const add = (worker: string): ReturnType<typeof gateway.json> =>
    gateway.json("/api/rpc/workers", postWith({ worker }));
  const refused = await add("203.0.113.9:50052");
  assert.equal(refused.status, 400);
  assert.match(JSON.stringify(refused.body), /public address.*allowPublicWorkers/);
  // The resolver takes a bare number for an address: 3405803785 is 203.0.113.9.
  assert.equal((await add("3405803785:50052")).status, 400);
  assert.equal((await add("[fd00::1]:50052")).status, 400);
  const unknown = await add("nobody.invalid:50052");
  assert.equal(unknown.status, 200);
  assert.match(JSON.stringify(unknown.body["notInUse"]), /nobody\.invalid:50052","reason":"Unresolvable"/);
  assert.deepEqual(reachable(gateway.gateway.status()), ["False Unresolvable"]);
});
