// Models that do not all fit, under a limit that the system enforces: no load ends in a kill, two that fit are never swapped, and what
// can never fit is refused with a context that does. LOADS and LOADS_SEED choose how many loads are played, and which.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheModel, makeFolders } from "../support/folders.ts";
import { loadBegun, loadedIds, loadsBegun, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { limitAddressSpace, limitMemory } from "../support/memory-limit.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";
import { pick, randomFrom } from "../support/seeded.ts";

const count = Number(process.env["LOADS"] ?? 20);
const seed = Number(process.env["LOADS_SEED"] ?? 1);

const mebibyte = 2 ** 20;
const limit = 384 * mebibyte;
const reserve = 48 * mebibyte;
/** What this process and the router take of it, at most. */
const ours = 120 * mebibyte;
/** Of address space, for libraries and stacks of threads, where no cgroup can be made. */
const besides = 2048 * mebibyte;

/** Tokens of context: a KiB of KV cache each, and a few percent of buffers. */
const contexts: Readonly<Record<string, number>> = {
  "acme/a:Q8_0": 24 * 1024,
  "acme/b:Q8_0": 48 * 1024,
  "acme/c:Q8_0": 80 * 1024,
  "acme/d:Q8_0": 112 * 1024,
  "acme/e:Q8_0": 160 * 1024,
};
const huge = "acme/huge:Q8_0";
const trained = 1024 * 1024;
const ids = Object.keys(contexts);

/** At most. */
function bytesOf(id: string): number {
  return (contexts[id] ?? 0) * 1024 * 1.07 + 12 * mebibyte;
}

function documentWith(memory: string): string {
  const models = Object.entries({ ...contexts, [huge]: trained }).map(
    ([id, size]) =>
      `  - { id: "${id}", ctxSize: ${size}, preset: { parallel: 1, threads: 1, ubatch-size: 32, batch-size: 32 } }`,
  );
  return ["version: 1", `memory: ${memory}`, "models:", ...models, ""].join("\n");
}

/** The context that a refusal names makes it load; what comes before that is known is refused without it. */
async function askWithRemedy(gateway: TestGateway, id: string): Promise<void> {
  let context = 0;
  await until("a refusal names a context", async () => {
    const answer = await gateway.json("/v1/chat/completions", chatWith(id));
    assert.deepEqual([answer.status, codeOf(answer)], [507, "too_large"], messageOf(answer));
    const named = /: (?:a context of (\d+) would fit|the engine is being asked what would fit$)/.exec(
      messageOf(answer),
    );
    assert.ok(named, messageOf(answer));
    context = Number(named[1] ?? 0);
    return context > 0;
  });
  const set = async (ctxSize: number): Promise<void> => {
    const { status } = await gateway.json("/api/desired?wait=true", patchWith({ models: { [id]: { ctxSize } } }));
    assert.equal(status, 200);
  };
  await set(context);
  await gateway.ask(id);
  await set(trained);
}

/** Asks one, which is answered; no model has left that could have stayed. */
async function askOne(gateway: TestGateway, id: string): Promise<void> {
  const before = await loadedIds(gateway);
  await gateway.ask(id);
  const after = await loadedIds(gateway);
  for (const left of before.filter((other) => !after.includes(other) && other !== huge)) {
    const sum = [...after, left].reduce((all, other) => all + bytesOf(other), 0);
    assert.ok(sum > limit - reserve - ours, `${left} has left for ${id} beside ${after.join()}`);
  }
}

test(`seed ${seed}: ${count} loads under a limit of memory`, { timeout: 60_000 + count * 5_000 }, async (t) => {
  const folders = await makeFolders(t);
  for (const id of [...ids, huge])
    await cacheModel(
      folders,
      id.replace(/:.*/, ""),
      "model-Q8_0.gguf",
      modelBytes({ ...talkingModel(id, { contextLength: trained }), width: 1024, feedForward: 256 }),
    );
  const cgroup = limitMemory(t, limit);
  const memory = cgroup.folder === null ? `{ budget: ${limit - reserve} }` : `{ reserve: ${reserve} }`;
  const gateway = await startTestGateway(t, { folders, yaml: documentWith(memory), flags: ["--models-max", "9"] });
  let begun = 0;
  let least = limit;
  const failures: object[] = [];
  // The journal keeps a thousand events, fewer than 200 loads have.
  gateway.gateway.journal.follow((event) => {
    if (loadBegun(event) !== null) begun++;
    if (event.type === "model" && JSON.stringify(event.data).includes('"failed":true')) failures.push(event.data);
    if (event.type === "model") least = Math.min(least, gateway.gateway.status().memory.limits["Host"] ?? 0);
  });
  await gateway.converged();
  t.diagnostic(cgroup.folder === null ? "limited by ulimit -v and a budget" : `limited by ${cgroup.folder}`);
  const router = gateway.gateway.status().router.pid;
  assert.ok(router !== null);
  if (cgroup.folder === null) limitAddressSpace(router, limit + besides);
  // The memory of this process goes up and down, and would be another program's.
  cgroup.leave();

  const [a = "", b = ""] = ids;
  for (const id of [a, b, a, b]) await gateway.ask(id);
  assert.deepEqual(loadsBegun(gateway), [a, b], "two that fit are not swapped");
  await askWithRemedy(gateway, huge);
  const [native, anthropic] = await Promise.all(
    ["/api/chat", "/v1/messages"].map((path) => gateway.json(path, chatWith(huge, "hi", { max_tokens: 9 }))),
  );
  assert.match(
    String(native?.body["error"]),
    /^acme\/huge:Q8_0 needs 1\.\d GiB of main memory, and \d+ MiB are free for it: a context/,
  );
  assert.deepEqual([native?.status, anthropic?.status, anthropic?.body["type"]], [507, 507, "error"]);
  await until("a load by hand is refused at once, too", async () => {
    const load = await gateway.json("/v1/models/load", postWith({ model: huge }));
    return load.status === 507 && codeOf(load) === "too_large";
  });

  const random = randomFrom(seed);
  let remedies = 0;
  while (begun < count) {
    const dice = random();
    if (dice < 0.05) await askWithRemedy(gateway, huge).then(() => remedies++);
    else if (dice < 0.3) await Promise.all([pick(random, ids), pick(random, ids)].map((id) => gateway.ask(id)));
    else await askOne(gateway, pick(random, ids));
  }
  assert.equal(cgroup.kills(), 0, "no process was killed");
  assert.deepEqual(failures, []);
  assert.ok(least > limit - reserve - ours, `what a load takes is no other program's: ${least} bytes for models`);
  t.diagnostic(`${begun} loads, ${remedies} remedies tried, at least ${least} bytes for models`);
});
