// The context that is chosen for a model, by the real llama-fit-params, where memory is short.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { findFitTool, runFitTool } from "../../../src/engines/llama/fit-params.ts";
import { openMemoryBook } from "../../../src/memory/book.ts";
import { type Candidate, chooseContext } from "../../../src/memory/context-choice.ts";
import { createMemory } from "../../../src/memory/memory.ts";
import { questionOf } from "../../../src/memory/question.ts";
import { plainStateFiles } from "../../../src/state/state-folder.ts";
import { cleanUp } from "../../support/clean-up.ts";
import { installedServer } from "../../support/engine.ts";
import { cacheModel, type GatewayFolders, makeFolders } from "../../support/folders.ts";
import { modelBytes, talkingModel } from "../../support/models.ts";
import { until } from "../../support/scratch.ts";
import { cacheOf, desiredFrom, world, worldFile } from "../../unit/plan/world.ts";

const mebibyte = 2 ** 20;
const trained = 1 << 20;

async function scene(t: TestContext, ids: readonly string[]) {
  const folders: GatewayFolders = await makeFolders(t);
  const server = await installedServer();
  const over = new AbortController();
  const memory = createMemory({
    book: await openMemoryBook({ stateDir: folders.stateDir, files: plainStateFiles, warn: () => undefined }),
    findTool: () => findFitTool(server),
    run: (tool, args) =>
      runFitTool(tool, args, { stateDir: folders.stateDir, environment: process.env, signal: over.signal }),
    devices: async () => [],
    mainMemory: () => 2 ** 50,
    limits: () => new Map(),
    onKnown: () => undefined,
    isLoading: () => false,
    warn: () => undefined,
  });
  const desired = desiredFrom({ models: ids });
  const names = ids.map((id) => id.slice(id.indexOf("/") + 1, id.indexOf(":")));
  const paths = await Promise.all(
    names.map((name) =>
      cacheModel(
        folders,
        `acme/${name}`,
        `${name}-Q8_0.gguf`,
        modelBytes(talkingModel(name, { contextLength: trained })),
      ),
    ),
  );
  const cache = cacheOf(names.map((name) => worldFile(`acme/${name}/${name}-Q8_0.gguf`)));
  const models = cache.models.map((model, at) => ({
    ...model,
    files: [paths[at] ?? ""],
    blobs: [null],
    nCtxTrain: trained,
  }));
  const observed = world(desired, {});
  await memory.see(desired, { ...observed, cache: { state: "known", value: { ...cache, unreadable: [], models } } });
  const candidate = (at: number, isPinned: boolean, values: readonly [string, string][] = []): Candidate => ({
    model: models[at] ?? assert.fail("no such model"),
    values: new Map(values),
    isChosen: true,
    isPinned,
  });
  await until("known", () => ids.every((id) => memory.need(id) !== undefined));
  const choose = async (own: Candidate, pinned: readonly Candidate[], bytes: number, chosen: number | null = null) => {
    const limits = () => new Map([["Host", bytes]]);
    return chooseContext(own, pinned, { ...memory, limits }, () => chosen);
  };
  const bytesWith = async ({ model, values }: Candidate, tokens: number): Promise<number> => {
    const need = await memory.needFor(questionOf(model, new Map([...values, ["ctx-size", String(tokens)]])));
    return need?.bytes.get("Host") ?? Number.NaN;
  };
  cleanUp(t, () => memory.close());
  return { candidate, choose, bytesWith };
}

test("the largest that fits, beside what is pinned, and an equal share where two choose", async (t) => {
  const { candidate, choose, bytesWith } = await scene(t, ["acme/a:Q8_0", "acme/b:Q8_0"]);
  const [own, other] = [candidate(0, true), candidate(1, true)];
  const limit = 64 * mebibyte;
  const alone = await choose(own, [], limit);
  const tokens = alone?.tokens ?? 0;
  assert.ok(tokens > 1024 && tokens < trained && tokens % 1024 === 0, `${tokens}`);
  assert.ok((await bytesWith(own, tokens)) <= limit * (15 / 16));
  assert.ok((await bytesWith(own, tokens + 1024)) > limit * (15 / 16), "the next step would not fit");
  assert.equal((await choose(own, [], 2 ** 40))?.tokens, trained);

  const shared = (await choose(own, [other], limit))?.tokens ?? 0;
  assert.equal((await choose(other, [own], limit))?.tokens, shared, "as much as the other");
  assert.ok(shared < tokens);
  const both = (await bytesWith(own, shared)) + (await bytesWith(other, shared));
  assert.ok(both <= limit, `${both}`);

  const beside = candidate(0, false);
  const left = (await choose(beside, [other], limit, shared))?.tokens ?? 0;
  assert.ok((await bytesWith(beside, left)) + (await bytesWith(other, shared)) <= limit);
  assert.deepEqual(await choose(own, [], mebibyte / 4), { tokens: null, why: "none fits beside the pinned models" });
});

test("settings that the engine cannot take have no context", async (t) => {
  const { candidate, choose } = await scene(t, ["acme/a:Q8_0"]);
  const refused = await choose(candidate(0, false, [["cache-type-k", "q8_0"]]), [], 2 ** 40);
  assert.deepEqual(refused, { tokens: null, why: "the engine cannot take its settings" });
});
