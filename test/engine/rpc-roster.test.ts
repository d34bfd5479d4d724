// A roster of RPC workers that changes: by themselves, and by people and programs while answers are under way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { streamChat } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { postWith } from "../support/requests.ts";
import { reachable, reloads, rpcDocument, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";

test("a worker that comes and goes costs few reloads", async (t) => {
  const workers = await startWorkers(t, 2);
  // Longer than a round takes, on any machine.
  const gateway = await startRpcGateway(t, workers, { flags: ["--worker-stable", "60"] });
  const before = reloads(gateway);
  for (let round = 0; round < 4; round++) {
    await workers[1]?.kill();
    await gateway.until("away", (status) => /Refused|Lost/.test(reachable(status)[1] ?? ""));
    await workers[1]?.start();
    await gateway.until("answering again", (status) => /Stabilizing/.test(reachable(status)[1] ?? ""));
  }
  assert.ok(reloads(gateway) - before <= 2, `${reloads(gateway) - before} reloads`);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});

test("a roster edited under load, by file and by API at once, cuts no answer", async (t) => {
  const workers = await startWorkers(t, 3);
  const [a, b, c] = workers;
  assert.ok(a && b && c);
  const gateway = await startRpcGateway(t, [a]);
  const before = reloads(gateway);
  const answer = streamChat(gateway.url, gateway.model, "long");
  const add = gateway.json("/api/rpc/workers", postWith({ worker: b.address }));
  await gateway.writeConfig(rpcDocument([a, c]));
  const { done, text, error } = await answer;
  assert.deepEqual([error, done], [null, true]);
  assert.equal(text, answersOf("acme/talker").long);
  const { status } = await add;
  assert.equal(status, 200);
  await gateway.converged();
  const roster = await gateway.inPreset();
  assert.ok(roster.includes(a.address) && roster.includes(c.address), roster.join());
  assert.ok(reloads(gateway) - before <= 2);
  t.diagnostic(`${roster.length} workers after ${reloads(gateway) - before} reloads`);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});

test("the mode toggled under load cuts no answer, each way for one reload", async (t) => {
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers);
  for (const mode of ["single", "rpc"] as const) {
    const before = reloads(gateway);
    let changed: ReturnType<typeof gateway.json> | null = null;
    const { done, text, error } = await streamChat(gateway.url, gateway.model, "long", () => {
      changed ??= gateway.json("/api/rpc/mode", postWith({ mode }));
    });
    assert.deepEqual([error, done, text], [null, true, answersOf("acme/talker").long]);
    const answer = await (changed ?? assert.fail("nothing was said"));
    assert.equal((answer as { status: number }).status, 200);
    assert.equal((await gateway.inPreset()).length, mode === "rpc" ? 2 : 0);
    assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
    assert.equal(reloads(gateway) - before, 1);
  }
});
