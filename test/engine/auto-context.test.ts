// A context that the document leaves to the gateway, with what the engine's own tool says of the models.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { installedServer } from "../support/engine.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { loadedIds, loadsBegun, startTestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { codeOf, contextLengths } from "../support/own-calls.ts";
import { chatWith, patchWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

test("the largest context that fits is chosen once, in force when the call answers, and a setting that fails does not loop", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/a");
  const file = modelBytes(talkingModel("b", { contextLength: 5000 }));
  await cacheModel(folders, "acme/b", "model-Q8_0.gguf", file);
  const beta = "acme/b:Q8_0";
  const yaml = `version: 1
context: { default: 512 }
models:
  - { id: "${alpha}", ctxSize: auto, pinned: true }
  - { id: "${beta}", ctxSize: auto, pinned: true }
`;
  const gateway = await startTestGateway(t, { folders, yaml, flags: ["--llama-server", await installedServer()] });
  await gateway.converged();
  assert.deepEqual(await contextLengths(gateway), { [alpha]: 8192, [beta]: 4096 });
  assert.equal(await gateway.ask(alpha), answersOf("acme/a").hello);
  assert.equal(await gateway.ask(beta), answersOf("b").hello);
  const applied = (id: string): string =>
    gateway.gateway
      .status()
      .models.find((model) => model.id === id)
      ?.conditions.find(({ type }) => type === "Applied")?.message ?? "";
  assert.equal(applied(beta), "It runs with a context of 4096 tokens, the largest that fits beside what is pinned.");
  const book = (): Promise<string> => readFile(join(folders.stateDir, "loads.json"), "utf8");
  const { contexts } = JSON.parse(await book()) as { contexts: Record<string, { tokens: number }> };
  assert.deepEqual([contexts[alpha]?.tokens, contexts[beta]?.tokens], [8192, 4096]);
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.deepEqual(loadsBegun(gateway), [alpha, beta], "chosen once, and loaded once");

  // The heads of these models are no multiple of the type's blocks: the tool refuses, and so does the engine.
  const bad = patchWith({ models: { [alpha]: { preset: { "cache-type-k": "q8_0" } } } });
  const { body } = await gateway.json("/api/desired?wait=true", bad);
  assert.equal(body["converged"], false);
  assert.match(JSON.stringify(body["findings"]), /ctxSize: auto is left out: /);
  const before = loadsBegun(gateway).length;
  assert.equal(await gateway.ask(alpha), answersOf("acme/a").hello, "the last settings that worked");
  await gateway.json("/api/desired?wait=true", patchWith({ models: { [beta]: { preset: { threads: 1 } } } }));
  assert.equal(await gateway.ask(alpha), answersOf("acme/a").hello);
  assert.equal(
    loadsBegun(gateway)
      .slice(before)
      .filter((id) => id === alpha).length,
    3,
    "two tries and one that worked",
  );
  await gateway.until("told", () => applied(alpha).includes("it could not be loaded"));

  const mend = patchWith({ models: { [alpha]: { preset: null } } });
  assert.equal((await gateway.json("/api/desired?wait=true", mend)).status, 200);
  assert.equal((await contextLengths(gateway))[alpha], 8192);
  const wrong = await gateway.json("/api/desired", patchWith({ models: { [alpha]: { ctxSize: "most" } } }));
  assert.equal(codeOf(wrong), "invalid_document");
  assert.match(JSON.stringify(wrong.body), /is not of the form 8192 or auto/);
  assert.equal((await gateway.json("/v1/chat/completions", chatWith(alpha))).status, 200);
});

test("a choice stays while a response is in flight, and follows the memory that there is after it", async (t) => {
  const folders = await makeFolders(t);
  const wide = { ...talkingModel("wide", { contextLength: 131_072 }), width: 1024, feedForward: 256 };
  const ids = ["acme/busy:Q8_0", "acme/idle:Q8_0"] as const;
  const [busy, idle] = ids;
  for (const id of ids) await cacheModel(folders, id.replace(/:.*/, ""), "model-Q8_0.gguf", modelBytes(wide));
  const lines = ids.map(
    (id) => `  - { id: "${id}", ctxSize: auto, preset: { parallel: 1, ubatch-size: 32, batch-size: 32 } }`,
  );
  const yaml = ["version: 1", "memory: { budget: 120MiB }", "models:", ...lines, ""].join("\n");
  const flags = ["--llama-server", await installedServer(), "--drain-timeout", "0.5"];
  const gateway = await startTestGateway(t, { folders, yaml, flags });
  await gateway.converged();
  const contextOf = async (id: string): Promise<number> => Number((await contextLengths(gateway))[id]);
  const first = await contextOf(busy);
  assert.ok(first > 80 * 1024 && first < 131_072, `${first} tokens`);
  const client = new AbortController();
  const init = chatWith(busy, "forever", { stream: true });
  await fetch(`${gateway.url}/beta/v1/chat/completions`, { ...init, signal: client.signal });
  const setBudget = (budget: string) => gateway.json("/api/desired?wait=true", patchWith({ memory: { budget } }));
  await setBudget("60MiB");
  await until(
    "the idle one follows, for which the busy one was asked before",
    async () => (await contextOf(idle)) < first,
  );
  assert.deepEqual([await contextOf(busy), await loadedIds(gateway)], [first, [busy]]);
  client.abort();
  await gateway.until("idle", ({ inFlight }) => Object.keys(inFlight).length === 0);
  await setBudget("59MiB");
  await until("chosen again", async () => (await contextOf(busy)) < first);
});
