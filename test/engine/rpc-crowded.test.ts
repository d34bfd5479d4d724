// RPC mode when others get in the way: another client at a worker, and a router that is killed.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { streamChat } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { reachable, since, startRpcGateway } from "../support/rpc-gateway.ts";
import { startWorkers } from "../support/rpc-worker.ts";

test("a worker that serves somebody else is told of, and models run without it until it is free", async (t) => {
  const workers = await startWorkers(t, 2);
  const [, port] = workers[1]?.address.split(":") ?? [];
  const others = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const other = connect(Number(port), "127.0.0.1");
      cleanUp(t, () => void other.destroy());
      other.on("error", () => undefined);
      await once(other, "connect");
      return other;
    }),
  );
  const gateway = await startRpcGateway(t, workers, { answering: 1 });
  const [first, second] = reachable(gateway.gateway.status());
  assert.equal(first, "True Answering");
  assert.match(second ?? "", /^False (?:NotAnswering|Unreachable)$/);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
  for (const other of others) other.destroy();
  await gateway.until("free", (status) => reachable(status)[1] === "True Answering");
  await gateway.converged();
  assert.equal((await gateway.inPreset()).length, 2);
  assert.equal(await gateway.ask(gateway.model), answersOf("acme/talker").hello);
});

test("the router is killed in mid-answer: the answer goes on, and the next model gets the workers after it", async (t) => {
  const workers = await startWorkers(t, 2);
  const gateway = await startRpcGateway(t, workers);
  let pieces = 0;
  let killedAt = 0;
  let next: Promise<string> | null = null;
  const { text, done, error } = await streamChat(gateway.url, gateway.model, "long", () => {
    if (++pieces !== 5) return;
    killedAt = performance.now();
    process.kill(gateway.gateway.status().router.pid ?? assert.fail("no router"), "SIGKILL");
    next = gateway.ask(gateway.model);
  });
  assert.deepEqual([error, done, text], [null, true, answersOf("acme/talker").long]);
  assert.equal(await (next ?? assert.fail("nothing was said")), answersOf("acme/talker").hello);
  t.diagnostic(`asked when the router was killed, answered after ${since(killedAt)}`);
  assert.deepEqual(reachable(gateway.gateway.status()), ["True Answering", "True Answering"]);
});
