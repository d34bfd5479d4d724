// The plan whole, on the real engine: the actions that run for a change are those that its dry run showed.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { PlanBody } from "../../src/client/index.ts";
import { cleanUp } from "../support/clean-up.ts";
import { type CommandResult, commandHere, runCommand } from "../support/command.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { eventsOf, loadedIds, startTestGateway, streamChat, type TestGateway } from "../support/gateway.ts";
import { type LoopbackHub, startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, slowModel, talkingModel } from "../support/models.ts";

interface Started {
  readonly hub: LoopbackHub;
  readonly gateway: TestGateway;
}

interface ActionEvent {
  readonly kind: string;
  readonly key: string;
  readonly reason: string;
}

async function started(t: TestContext): Promise<Started> {
  const hub = await startLoopbackHub(t);
  for (const name of ["one", "two", "three"])
    hub.addRepo(`acme/${name}`, { files: { [`${name}-Q8_0.gguf`]: modelBytes(talkingModel(name)) } });
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/other");
  await writeFile(join(folders.stateDir, "mine-Q8_0.gguf"), modelBytes(talkingModel("mine")));
  const gateway = await startTestGateway(t, {
    folders,
    yaml: "version: 1\nprune: true\npruneAfter: 0\nmodels: []\n",
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  return { hub, gateway };
}

const named = ({ kind, key, reason }: ActionEvent): string => `${kind} ${key} ${reason}`;

/** Names of the actions that have succeeded. */
function done({ gateway }: TestGateway): string[] {
  return eventsOf(gateway, "action.finished").map(({ data }) => named(data as ActionEvent));
}

function send(
  gateway: TestGateway,
  query: string,
  yaml: string,
): Promise<{ status: number; body: Record<string, unknown> }> {
  return gateway.json(`/api/desired?${query}`, {
    method: "PUT",
    headers: { "content-type": "application/yaml" },
    body: yaml,
  });
}

/**
 * Without the reloads for a changed cache, but for a last one: how many changes each of them finds is a matter of milliseconds,
 * as a pass that plans one is under way beside the next pull or deletion. Where a model is brought, each action counts once between
 * two changes of the cache, as a pass may see its file before its ref.
 */
function essential(actions: readonly string[]): readonly string[] {
  const reload = "router.reload router CacheChanged";
  const isBrought = actions.some((action) => /^model\.(pull|import) /.test(action));
  const stretches: string[][] = [[]];
  actions.forEach((action, index) => {
    if (action.startsWith("model.")) stretches.push([]);
    const stretch = stretches.at(-1) ?? [];
    const isRepeated = isBrought && stretch.includes(action);
    if (!isRepeated && (action !== reload || index === actions.length - 1)) stretch.push(action);
  });
  return stretches.flat();
}

/** Plans a document, applies it, and compares what ran. */
async function applied(
  gateway: TestGateway,
  models: string,
  how: "in order" | "in any order" = "in order",
): Promise<PlanBody> {
  const yaml = `version: 1\nprune: true\npruneAfter: 0\nallowEmpty: true\n${models}`;
  const trial = await send(gateway, "dryRun=true", yaml);
  assert.equal(trial.status, 200, JSON.stringify(trial.body));
  const plan = trial.body as unknown as PlanBody;
  assert.ok(plan.complete);
  const before = done(gateway).length;
  const put = await send(gateway, "wait=true", yaml);
  assert.equal(put.status, 200, JSON.stringify(put.body));
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  const ran = essential(done(gateway).slice(before));
  const steps = essential(plan.steps.map(named));
  if (how === "in order") assert.deepEqual(ran, steps);
  else {
    const models = (actions: readonly string[]): string[] =>
      actions.filter((name) => name.startsWith("model.")).toSorted();
    assert.deepEqual([models(ran), new Set(ran)], [models(steps), new Set(steps)]);
  }
  return plan;
}

test("a history of documents: what runs is what the dry run showed", async (t) => {
  const { gateway, hub } = await started(t);
  const pulled = await applied(gateway, "models: [acme/one:Q8_0]\n");
  assert.deepEqual([pulled.totals.pull.count, pulled.totals.pull.bytes], [1, modelBytes(talkingModel("one")).length]);
  assert.deepEqual(pulled.hub, { asked: true, unanswered: [] });

  const sized = await applied(gateway, "models: [{ id: acme/one:Q8_0, ctxSize: 512 }]\n");
  assert.deepEqual(
    sized.steps.flatMap(({ changes }) => changes).filter(({ field }) => field === "ctx-size"),
    [{ subject: "acme/one:Q8_0", field: "ctx-size", from: null, to: "512" }],
  );
  await gateway.ask("acme/one:Q8_0");
  const ended = await applied(gateway, "models: [{ id: acme/one:Q8_0, ctxSize: 1024 }]\n");
  const memoryBytes = ended.steps.at(-1)?.ends[0]?.memoryBytes;
  assert.deepEqual(
    [ended.totals.reload, ended.steps.at(-1)?.ends],
    [1, [{ model: "acme/one:Q8_0", inFlight: 0, memoryBytes }]],
  );
  assert.ok((memoryBytes ?? 0) > 1e6, `${memoryBytes}`);

  await applied(gateway, "context: { default: 768 }\nmodels: [{ id: acme/one:Q8_0, ctxSize: 1024 }]\n");
  // On a busy machine so small a file is there before the first such reload, which then serves for both. Not held from before the
  // dry run, which reads the file's header.
  let hold: ReturnType<LoopbackHub["throttle"]> | null = null;
  let isRead = false;
  const unfollow = gateway.gateway.journal.follow(({ type, data }) => {
    const { kind, reason } = data as unknown as ActionEvent;
    if (type === "action.started" && kind === "model.pull" && !isRead) hold = hub.throttle("two-Q8_0.gguf", 100_000);
    if (type !== "action.finished" || reason !== "PresetChanged") return;
    isRead = true;
    hold?.release();
  });
  cleanUp(t, unfollow);
  const renamed = await applied(gateway, "models: [{ id: acme/two:Q8_0, ctxSize: 640 }]\n");
  assert.deepEqual([renamed.totals.pull.count, renamed.totals.delete.count], [1, 1]);
  assert.equal(renamed.totals.delete.bytes, modelBytes(talkingModel("one")).length);

  await applied(gateway, "models: [acme/one:Q8_0, acme/two:Q8_0, acme/three:Q8_0]\n", "in any order");
  const revision = hub.updateRepo("acme/two", { files: { "two-Q8_0.gguf": modelBytes(talkingModel("two, newer")) } });
  const moved = await applied(
    gateway,
    `models: [acme/one:Q8_0, { id: acme/two:Q8_0, revision: ${revision} }, acme/three:Q8_0]\n`,
  );
  assert.ok(moved.steps[0]?.changes.some(({ field, to }) => field === "commit" && to === revision));
  const emptied = await applied(gateway, "models: []\n");
  assert.equal(emptied.totals.delete.count, 3);
  assert.deepEqual(await loadedIds(gateway), []);

  const paused = await applied(gateway, "suspend: true\nmodels: [acme/one:Q8_0]\n");
  assert.deepEqual([paused.steps, paused.remaining.map(({ held }) => held)], [[], ["suspended"]]);
});

test("files of this machine: an import, its model's size, and its return", async (t) => {
  const { gateway } = await started(t);
  const mine = "local/mine:Q8_0";
  await gateway.writeConfig(
    `version: 1\nprune: true\npruneAfter: 0\nmodels: [{ id: ${mine}, source: mine-Q8_0.gguf }]\n`,
  );
  await gateway.until("imported", (status) => status.generation === 2 && status.sync === "Synced");
  const source = "source: mine-Q8_0.gguf";
  await applied(gateway, `models: [{ id: ${mine}, ${source}, ctxSize: 512 }]\n`);
  await applied(gateway, "models: []\n");
  const back = await applied(gateway, `models: [{ id: ${mine}, ${source} }]\n`);
  assert.deepEqual(back.totals.import, { count: 1, bytes: modelBytes(talkingModel("mine")).length, unknown: 0 });
});

test("plan -f: another document against the running gateway and without one; what the hub refuses, responses in flight", async (t) => {
  const { gateway, hub } = await started(t);
  await cacheModel(gateway, "acme/slow", "slow-Q8_0.gguf", modelBytes(slowModel("slow")));
  const slow = "acme/slow:Q8_0";
  await applied(gateway, `models: [{ id: ${slow}, preset: { threads: 1 } }]\n`);
  const path = join(gateway.root, "next.yaml");
  const port = new URL(gateway.url).port;
  const environment = { HF_ENDPOINT: hub.endpoint };
  async function planned(yaml: string, ...flags: readonly string[]): Promise<CommandResult> {
    await writeFile(path, yaml);
    return commandHere(gateway, ["plan", "-f", path, ...flags], environment);
  }

  const same = `version: 1\nprune: true\npruneAfter: 0\nallowEmpty: true\nmodels: [{ id: ${slow}, preset: { threads: 1 } }]\n`;
  const nothing = await planned(same, "--port", port);
  assert.deepEqual([nothing.code, nothing.stdout.trimEnd().split("\n").at(-1)], [0, "Nothing to do."]);

  let asked: Promise<CommandResult> | null = null;
  const answer = await streamChat(gateway.url, slow, "long", () => {
    asked ??= planned(
      `version: 1\nmodels: [{ id: ${slow}, ctxSize: 512, preset: { threads: 1 } }, acme/one:Q8_0]\n`,
      "--port",
      port,
    );
  });
  const { code, stdout } = await (asked as unknown as Promise<CommandResult>);
  assert.deepEqual([code, answer.done, answer.text], [2, true, answersOf("slow").long]);
  assert.match(stdout, /^~ preset\.write: write router\.preset\.ini \(PresetDiffers\)$/m);
  assert.match(stdout, /^ {4}acme\/slow:Q8_0 ctx-size: none → 512$/m);
  assert.match(
    stdout,
    /^ {4}ends the instance of acme\/slow:Q8_0 \([\d.]+ MiB of memory\), awaits 1 response in flight until --drain-timeout$/m,
  );
  assert.match(stdout, /^\+ model\.pull: pull acme\/one:Q8_0, [\d.]+ [kM]?B \(ModelAbsent\)$/m);
  assert.match(stdout, /^Plan: \d+ steps, 1 to pull \([\d.]+ [kM]?B\), 1 to reload \(1 in flight\)\.$/m);

  const misspelt = await planned(`version: 1\nmodels: [${slow}, acme/onne:Q8_0, acme/one:Q9]\n`, "--port", port);
  assert.equal(misspelt.code, 1);
  assert.match(misspelt.stdout, /^! acme\/onne:Q8_0: the hub does not have acme\/onne at main/m);
  assert.match(misspelt.stdout, /^! acme\/one:Q9: acme\/one has nothing called Q9\. It has: Q8_0/m);
  assert.match(misspelt.stdout, /, 2 that cannot be done\.$/m);
  const questions = hub.requests.length;
  const offline = await planned(
    `version: 1\nmodels: [${slow}, acme/onne:Q8_0]\n`,
    "--port",
    port,
    "--offline",
    "--json",
  );
  const body = JSON.parse(offline.stdout) as PlanBody;
  assert.deepEqual(
    [offline.code, body.hub, body.totals.pull],
    [2, { asked: false, unanswered: [] }, { count: 1, bytes: 0, unknown: 1 }],
  );
  assert.equal(hub.requests.length, questions);

  const missing = await planned(`version: 1\nmodels: [{ id: local/x:Q8_0, source: ./x.gguf }]\n`, "--port", port);
  assert.equal(missing.code, 1);
  assert.match(missing.stdout, /^! local\/x:Q8_0: \S+x\.gguf is not there/m);

  await gateway.gateway.stop();
  await writeFile(path, "version: 1\nmodels: [acme/two:Q8_0]\n");
  const alone = await runCommand(t, gateway, ["plan", "-f", path], environment);
  assert.equal(alone.code, 2, alone.stderr);
  assert.match(alone.stdout, /^\+ model\.pull: pull acme\/two:Q8_0, /m);
  assert.match(alone.stdout, /^\+ router\.start: start the router \(RouterStopped\)$/m);
});
