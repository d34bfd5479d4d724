// Changes cost no more than they must: one of a model that is not loaded disturbs nobody, and a restart takes all along.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheTalker, makeFolders, makeTalkerFolders, talker } from "../support/folders.ts";
import { eventsOf, startTestGateway, type TestGateway, untilLoaded } from "../support/gateway.ts";
import { holdAnswer } from "../support/held-answer.ts";
import { answersOf } from "../support/models.ts";
import { contextLengths } from "../support/own-calls.ts";
import { patchWith } from "../support/requests.ts";

/** How often the router did something that the loop asked for. */
function done({ gateway }: TestGateway, kind: string): number {
  return eventsOf(gateway, "action.finished").filter(({ data }) => (data as { kind?: string }).kind === kind).length;
}

test("a change to a model that is not loaded is in force while streams of others go on, and unloads nothing", async (t) => {
  const folders = await makeTalkerFolders(t);
  const [idle, changed] = [await cacheTalker(folders, "acme/idle"), await cacheTalker(folders, "acme/changed")];
  const gateway = await startTestGateway(t, { folders });
  await gateway.converged();
  await gateway.ask(idle);
  const held = await holdAnswer(t, gateway, talker);
  // It would wait for the answer that is held.
  const patch = patchWith({ models: { [changed]: { ctxSize: 512 } } });
  assert.equal((await gateway.json("/api/desired?wait=true", patch)).status, 200);
  held.release();
  assert.deepEqual(await held.answer, { text: answersOf("talker").long, done: true, error: null });
  assert.equal((await contextLengths(gateway))[changed], 512);
  await untilLoaded(gateway, idle, talker);
  const unloads = eventsOf(gateway.gateway, "model").filter(({ data }) => JSON.stringify(data).includes('"unloaded"'));
  assert.deepEqual(unloads, []);
});

test("changes that wait for a router that hangs cost its one restart", async (t) => {
  const folders = await makeFolders(t);
  const [a, b] = [await cacheTalker(folders, "acme/a"), await cacheTalker(folders, "acme/b")];
  const gateway = await startTestGateway(t, {
    folders,
    yaml: "version: 1\n",
    flags: ["--silence-limit", "6", "--resync", "0.2", "--stop-grace", "0.5"],
  });
  const { router } = await gateway.converged();
  const reloads = done(gateway, "router.reload");
  process.kill(router.pid ?? 0, "SIGSTOP");
  await gateway.until("silent", (status) => !status.router.connected);
  const sizes = { [a]: 512, [b]: 768 };
  await Promise.all(
    Object.entries(sizes).map(([id, ctxSize]) =>
      gateway.json("/api/desired", patchWith({ models: { [id]: { ctxSize } } })),
    ),
  );
  await gateway.until("another router", (status) => status.router.pid !== null && status.router.pid !== router.pid);
  await gateway.converged();
  assert.deepEqual(await contextLengths(gateway), sizes);
  assert.deepEqual([done(gateway, "router.restart"), done(gateway, "router.reload") - reloads], [1, 0]);
});
