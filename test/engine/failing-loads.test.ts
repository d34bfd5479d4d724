// Models that end each time they are loaded: told fast and in words, not tried with every request, and nobody else waits.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { loadedIds, loadsBegun, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";

const broken = "acme/broken:Q8_0";

function loadedCondition({ gateway }: TestGateway, id: string): { reason: string; message: string } | undefined {
  const model = gateway.status().models.find((entry) => entry.id === id);
  return model?.conditions.find((condition) => condition.type === "Loaded");
}

/** A model whose file ends in the middle of its tensors. */
async function start(t: TestContext, flags: readonly string[] = []): Promise<{ gateway: TestGateway; other: string }> {
  const folders = await makeFolders(t);
  const bytes = modelBytes(talkingModel("broken"));
  await cacheModel(folders, "acme/broken", "model-Q8_0.gguf", bytes.subarray(0, bytes.length >> 1));
  const other = await cacheTalker(folders, "acme/other");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n", flags });
  await gateway.converged();
  return { gateway, other };
}

test("a truncated file: one load for many requests, and a second try, then a fast refusal that says why and when, in each family", async (t) => {
  const { gateway, other } = await start(t, ["--models-max", "1"]);
  const [first, ...rest] = await Promise.all(
    Array.from({ length: 20 }, () => gateway.json("/v1/chat/completions", chatWith(broken))),
  );
  assert.ok(first);
  for (const answer of [first, ...rest])
    assert.ok(["model_load_failed", "load_failing"].includes(codeOf(answer) ?? ""));
  assert.deepEqual([first.status, codeOf(first)], [500, "model_load_failed"]);
  // Twice: a process may have ended for what has nothing to do with its model.
  assert.deepEqual(loadsBegun(gateway), [broken, broken]);

  const compat = await gateway.json("/v1/chat/completions", chatWith(broken));
  const native = await gateway.json("/api/chat", chatWith(broken));
  assert.deepEqual(loadsBegun(gateway), [broken, broken], "no load is waited for");
  assert.deepEqual([compat.status, codeOf(compat), native.status], [503, "load_failing", 503]);
  assert.match(compat.headers.get("retry-after") ?? "", /^[1-5]$/);
  // The engine's own words are in it.
  assert.match(
    messageOf(compat),
    /^acme\/broken:Q8_0 is not tried for another [1-5] s, as loading it failed: .*(fail|error|corrupt)/i,
  );
  await gateway.until("told", () => loadedCondition(gateway, broken)?.reason === "LoadFailing");
  assert.match(loadedCondition(gateway, broken)?.message ?? "", /^Its last load failed: /);

  assert.equal(await gateway.ask(other), answersOf("acme/other").hello);
  for (let count = 0; count < 5; count++) await gateway.json("/v1/chat/completions", chatWith(broken));
  assert.deepEqual(await loadedIds(gateway), [other], "who cannot be loaded costs nobody a place while it rests");
});

test("who asks for it has it tried at once; so has another file, and one that works is served", async (t) => {
  const { gateway } = await start(t);
  const isRefused = async (): Promise<boolean> =>
    codeOf(await gateway.json("/v1/chat/completions", chatWith(broken))) === "load_failing";
  await gateway.json("/v1/chat/completions", chatWith(broken));
  assert.equal(await isRefused(), true);
  await gateway.json("/v1/models/load", postWith({ model: broken }));
  await gateway.until("tried", () => loadsBegun(gateway).length === 2);
  await gateway.until("failed", ({ inFlight, waiting }) => Object.keys(inFlight).length + waiting.length === 0);
  assert.equal(await isRefused(), true);
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.equal(codeOf(await gateway.json("/v1/chat/completions", chatWith(broken))), "model_load_failed");
  assert.equal(await isRefused(), true);
  await cacheModel(gateway, "acme/broken", "model-Q8_0.gguf", modelBytes(talkingModel("mended")));
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.equal(await gateway.ask(broken), answersOf("mended").hello);
  await gateway.until("loaded", () => loadedCondition(gateway, broken)?.reason === "Loaded");
});

test("settings that the engine cannot run: refused while they stand, served as soon as they are others", async (t) => {
  const folders = await makeFolders(t);
  const id = await cacheTalker(folders, "acme/a");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${id}", preset: { cache-type-k: nonsense } }]\n`,
  });
  await gateway.converged();
  assert.equal(codeOf(await gateway.json("/v1/chat/completions", chatWith(id))), "model_load_failed");
  const again = await gateway.json("/v1/chat/completions", chatWith(id));
  assert.equal(codeOf(again), "load_failing");
  const mend = patchWith({ models: { [id]: { preset: { "cache-type-k": "f16" } } } });
  assert.equal((await gateway.json("/api/desired?wait=true", mend)).status, 200);
  assert.equal(await gateway.ask(id), answersOf("acme/a").hello);
});

test("a model whose process is killed while it is loaded is loaded once more, and nobody is told", async (t) => {
  const folders = await makeFolders(t);
  const id = await cacheTalker(folders, "acme/killed");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const router = gateway.gateway.status().router.pid;
  assert.ok(router !== null);
  let killed = 0;
  // At once: on a busy machine the model was loaded before the processes had been listed.
  const kill = (): void => {
    for (const thread of readdirSync(`/proc/${router}/task`))
      for (const pid of readFileSync(`/proc/${router}/task/${thread}/children`, "utf8").match(/\d+/g) ?? [])
        if (process.kill(Number(pid), "SIGKILL")) killed++;
  };
  // The router says so as it starts the process.
  const unfollow = gateway.gateway.journal.follow(({ type, data }) => {
    if (type === "model" && JSON.stringify(data).includes('"loading"') && killed === 0) kill();
  });
  cleanUp(t, unfollow);
  assert.equal(await gateway.ask(id), answersOf("acme/killed").hello);
  assert.equal(killed, 1);
  assert.deepEqual(loadsBegun(gateway), [id, id]);
  assert.equal(loadedCondition(gateway, id)?.reason === "LoadFailing", false);
});
