// A removal survives kill -9 at any point: after the next start every trace of the model is gone, or everything is there.
// Real gateway, real router; when it is killed a seeded generator says.
import assert from "node:assert/strict";
import { readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { entriesBelow } from "../../src/state/folder.ts";
import { type RunningCommand, startCommand } from "../support/command.ts";
import { cacheModel, cacheTalker, type GatewayFolders, makeFolders } from "../support/folders.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

const rounds = Math.ceil(Number(process.env["KILLS"] ?? 80) / 8);
const seed = 20_260_131;

/** Numbers from 0 to below 1, the same for the same seed. */
function numbers(start: number): () => number {
  let state = start;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const files = ["victim-Q8_0-00001-of-00002.gguf", "victim-Q8_0-00002-of-00002.gguf"];
const victim = "acme/victim:Q8_0";

/** Paths and link targets of everything in the cache. */
async function world(cacheDir: string): Promise<string[]> {
  const entries = await entriesBelow(cacheDir);
  const lines = entries.map(async (entry) => {
    const path = join(entry.parentPath, entry.name);
    const target = entry.isSymbolicLink() ? ` -> ${await readlink(path)}` : "";
    return entry.isDirectory() ? null : path.slice(cacheDir.length + 1) + target;
  });
  return (await Promise.all(lines)).filter((line) => line !== null).sort();
}

async function writeVictim(folders: GatewayFolders): Promise<void> {
  const [head = "", tail = ""] = files;
  await cacheModel(folders, "acme/victim", head, modelBytes(talkingModel("victim")));
  await cacheModel(folders, "acme/victim", tail, Buffer.from("the second part"));
}

interface Running {
  readonly process: RunningCommand;
  readonly url: string;
  json(path: string): Promise<Record<string, unknown>>;
}

async function start(t: TestContext, folders: GatewayFolders): Promise<Running> {
  const process = await startCommand(t, folders, ["serve"]);
  const [, url = ""] = await process.output(/listens on (\S+);/);
  await process.output(/curl/);
  const json = async (path: string): Promise<Record<string, unknown>> =>
    (await (await fetch(url + path)).json()) as Record<string, unknown>;
  return { process, url, json };
}

async function listed({ json }: Running): Promise<string[]> {
  return ((await json("/v1/models"))["data"] as { id: string }[]).map(({ id }) => id).toSorted();
}

/** The document's generation that is in force, once nothing is left to do. */
function atRest({ json }: Running): Promise<unknown> {
  return until("at rest", async () => {
    const { sync, removals, generation, observedGeneration } = await json("/status");
    return sync === "Synced" && (removals as unknown[]).length === 0 && generation === observedGeneration;
  });
}

test(`after kill -9 in the midst of a removal all of the model is there, or nothing, ${rounds} times`, async (t) => {
  const folders = await makeFolders(t);
  const other = await cacheTalker(folders, "acme/other");
  // A quant of the same repository, whose files must stay.
  await cacheModel(folders, "acme/victim", "sibling-Q4_0.gguf", modelBytes(talkingModel("sibling")));
  const sibling = "acme/victim:Q4_0";
  const rest = await world(folders.cacheDir);
  await writeVictim(folders);
  const all = await world(folders.cacheDir);
  const random = numbers(seed);
  const outcomes = { gone: 0, there: 0, answered: 0 };
  await folders.writeConfig(`version: 1\nmodels: ["${other}", "${sibling}"]\n`);
  let gateway = await start(t, folders);
  const remove = () => fetch(`${gateway.url}/api/remove-model`, postWith({ model: victim }));
  // The moments of the kills follow the machine's pace: of a fixed 60 ms every one came before the first deletion once.
  const startedAt = performance.now();
  assert.equal((await remove()).status, 200);
  const wholeMs = performance.now() - startedAt;
  await atRest(gateway);

  for (let round = 0; round < rounds; round++) {
    await writeVictim(folders);
    assert.deepEqual(await world(folders.cacheDir), all);
    // With a section of its own, which has to go too.
    await fetch(`${gateway.url}/api/desired?wait=true`, patchWith({ models: { [victim]: { ctxSize: 512 + round } } }));
    await until("the victim is listed", async () => (await listed(gateway)).includes(victim));
    await atRest(gateway);

    const answering = remove().then(
      ({ status }) => status === 200,
      () => false,
    );
    // Some kills come before the first deletion, a few after the answer: the first and the last surely do.
    if (round === rounds - 1) await answering;
    else await new Promise((resolve) => setTimeout(resolve, round === 0 ? 0 : random() * 1.2 * wholeMs));
    gateway.process.process.kill("SIGKILL");
    await gateway.process.exited;
    const isAnswered = await answering;

    gateway = await start(t, folders);
    await atRest(gateway);
    const found = await world(folders.cacheDir);
    const ids = await listed(gateway);
    const document = JSON.stringify((await gateway.json("/api/desired"))["document"]);
    const preset = await readFile(join(folders.stateDir, "router.preset.ini"), "utf8");
    const what = `round ${round}, seed ${seed}: ${JSON.stringify({ isAnswered, ids, document, found })}`;
    const isThere = ids.includes(victim);
    assert.deepEqual(ids, (isThere ? [other, sibling, victim] : [other, sibling]).toSorted(), what);
    assert.deepEqual([document.includes(victim), preset.includes(`[${victim}]`)], [isThere, isThere], what);
    assert.deepEqual(found, isThere ? all : rest, what);
    assert.ok(!(isAnswered && isThere), `an answered removal came back: ${what}`);
    outcomes[isThere ? "there" : "gone"]++;
    if (isAnswered) outcomes.answered++;
  }
  t.diagnostic(JSON.stringify(outcomes));
  assert.ok(outcomes.gone > 0 && outcomes.there > 0, JSON.stringify(outcomes));
});
