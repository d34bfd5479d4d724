// Processes that are there and do nothing: a router that hangs, a model that hangs, a gateway that was suspended.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findLeftovers } from "../../src/engines/process/leftovers.ts";
import { startCommand } from "../support/command.ts";
import { cacheTalker, makeTalkerFolders, talker } from "../support/folders.ts";
import { startTestGateway, streamChat, type TestGateway } from "../support/gateway.ts";
import { slowDown, suspend } from "../support/held-answer.ts";
import { answersOf } from "../support/models.ts";
import { childrenOf, isRunning } from "../support/processes.ts";
import { until } from "../support/scratch.ts";

const flags = ["--silence-limit", "15", "--stop-grace", "0.5"];

async function start(t: Parameters<typeof startTestGateway>[0]): Promise<TestGateway & { alpha: string }> {
  const folders = await makeTalkerFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, flags });
  await gateway.converged();
  return { ...gateway, alpha };
}

test("a router that hangs is told, and replaced within seconds; answers on loaded models go on, and new ones begin", async (t) => {
  const { alpha, gateway, ...rest } = await start(t);
  assert.equal(await rest.ask(alpha), answersOf("acme/alpha").hello);
  const before = gateway.status().router.pid ?? 0;
  let pieces = 0;
  const stream = streamChat(rest.url, talker, "forever", () => {
    if (++pieces === 5) suspend(t, before);
  });
  await until("it hangs", () => pieces >= 5);
  await slowDown(t, rest, talker);
  const began = performance.now();
  await rest.until("told", ({ conditions }) => conditions.some(({ reason }) => reason === "RouterSilent"));
  assert.equal(await rest.ask(alpha), answersOf("acme/alpha").hello, "a loaded model answers without its router");
  const hasNext = (): boolean => ![null, before].includes(gateway.status().router.pid);
  await rest.until("replaced", (status) => hasNext() && status.router.connected);
  const ms = Math.round(performance.now() - began);
  t.diagnostic(`the next router answered ${ms} ms after the hang`);
  const seen = pieces;
  await until("the answer goes on", () => pieces > seen + 5);
  assert.equal(await isRunning(before), false);
  assert.equal(await rest.ask(alpha), answersOf("acme/alpha").hello);
  await gateway.stop();
  assert.equal((await stream).error, "the gateway is stopping");
  assert.deepEqual(await findLeftovers(rest.stateDir), []);
});

test("a model's process that hangs ends its answers in an error frame, and the next request is served by another", async (t) => {
  const { gateway, ...rest } = await start(t);
  const router = gateway.status().router.pid ?? 0;
  let pieces = 0;
  let hung = 0;
  const stream = await streamChat(rest.url, talker, "forever", () => {
    if (++pieces !== 5) return;
    void childrenOf(router).then(([pid = 0]) => {
      hung = pid;
      suspend(t, pid);
    });
  });
  assert.deepEqual([stream.done, stream.error], [false, "the engine does not answer any more"]);
  assert.equal(await rest.ask(talker), answersOf("talker").hello);
  assert.equal(gateway.status().router.pid, router);
  await until("the hung one is gone", async () => !(await isRunning(hung)));
});

test("a model's process that hangs while its router is killed is no orphan", async (t) => {
  const { alpha, gateway, ...rest } = await start(t);
  assert.equal(await rest.ask(alpha), answersOf("acme/alpha").hello);
  const router = gateway.status().router.pid ?? 0;
  const [hung = 0] = await childrenOf(router);
  suspend(t, hung);
  process.kill(router, "SIGKILL");
  await until("ended", async () => !(await isRunning(hung)));
  await rest.converged();
  assert.equal(await rest.ask(alpha), answersOf("acme/alpha").hello);
});

test("a gateway that was suspended for longer than its silence limit goes on where it was: streams, router and conditions", async (t) => {
  const folders = await makeTalkerFolders(t);
  const serve = await startCommand(t, folders, ["serve", "--stop-grace", "0.5", "--silence-limit", "10"]);
  const [, url = ""] = await serve.output(/listens on (\S+);/);
  await serve.output(/curl/);
  let pieces = 0;
  const stream = streamChat(url, talker, "forever", () => void pieces++);
  await until("it speaks", () => pieces > 5);
  await slowDown(t, folders, talker);
  const pid = serve.process.pid ?? 0;
  const engines = await findLeftovers(folders.stateDir);
  const resume = suspend(t, pid);
  await new Promise((resolve) => setTimeout(resolve, 14_000));
  resume();
  const seen = pieces;
  await until("it goes on", () => pieces > seen + 20);
  await until("ready", async () => (await fetch(`${url}/readyz`)).status === 200);
  assert.deepEqual((await findLeftovers(folders.stateDir)).toSorted(), engines.toSorted(), "nothing was started anew");
  serve.process.kill("SIGTERM");
  assert.equal((await stream).error, "the gateway is stopping");
  assert.equal((await serve.exited).code, 0);
  assert.deepEqual(await findLeftovers(folders.stateDir), []);
});
