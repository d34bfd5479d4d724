// A change of settings that the engine cannot load: the last ones that worked are in force again, and whoever waits is answered by them.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { commandHere } from "../support/command.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { eventsOf, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";

const hello = answersOf("acme/a").hello;

function conditionsOf(gateway: TestGateway, id: string): (type: string) => string {
  const model = gateway.gateway.status().models.find((each) => each.id === id);
  return (type) => {
    const found = model?.conditions.find((each) => each.type === type);
    return `${found?.status} ${found?.reason} ${found?.message}`;
  };
}

test("a change that the engine cannot load is rolled back, shown everywhere, and tried again when asked for", async (t) => {
  const folders = await makeFolders(t);
  const id = await cacheTalker(folders, "acme/a");
  const yaml = `version: 1\nmodels: [{ id: "${id}", ctxSize: 512 }]\n`;
  const gateway = await startTestGateway(t, { folders, yaml });
  await gateway.converged();
  assert.equal(await gateway.ask(id), hello);
  const preset = (): Promise<string> => readFile(join(folders.stateDir, "router.preset.ini"), "utf8");
  const applied = (): string => conditionsOf(gateway, id)("Applied");

  // The heads of this model are no multiple of the type's blocks.
  const bad = patchWith({ models: { [id]: { ctxSize: 1024, preset: { "cache-type-k": "q8_0" } } } });
  assert.equal((await gateway.json("/api/desired?wait=true", bad)).status, 200);
  assert.match(await preset(), /cache-type-k = q8_0/);
  const [first, second] = await Promise.all([gateway.ask(id), gateway.ask(id)]);
  assert.deepEqual([first, second], [hello, hello], "the requests that waited are answered");
  assert.doesNotMatch(await preset(), /cache-type-k/);
  await gateway.until("told", () => applied().startsWith("False RolledBack"));
  assert.match(
    applied(),
    /with ctx-size 1024, cache-type-k q8_0 it could not be loaded \(.*type.*\); it runs with ctx-size 512, no cache-type-k as before/,
  );
  const { body } = await gateway.json("/api/desired");
  assert.deepEqual((body["document"] as { models: unknown }).models, [
    { id, ctxSize: 1024, preset: { "cache-type-k": "q8_0" } },
  ]);
  const loads = (): number =>
    eventsOf(gateway.gateway, "model").filter(({ data }) => JSON.stringify(data).includes('"loading"')).length;
  const before = loads();
  assert.equal(await gateway.ask(id), hello);
  assert.equal(loads(), before, "it stays loaded");

  const plan = (await gateway.json("/api/plan?offline=true")).body as {
    steps: unknown[];
    problems: { message: string }[];
  };
  assert.deepEqual(plan.steps, []);
  assert.match(plan.problems[0]?.message ?? "", /runs with ctx-size 512/);
  const same = join(folders.root, "same.yaml");
  await writeFile(same, `version: 1\nmodels: [{ id: "${id}", ctxSize: 1024, preset: { cache-type-k: q8_0 } }]\n`);
  const wait = await commandHere(folders, ["apply", "-f", same, "--wait"]);
  assert.equal(wait.code, 1, wait.stdout + wait.stderr);
  assert.match(wait.stdout + wait.stderr, /RolledBack/);

  // Again, and in vain.
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.match(await preset(), /cache-type-k = q8_0/);
  assert.equal(await gateway.ask(id), hello);
  await gateway.until("told", () => applied().startsWith("False RolledBack"));
  const size = await gateway.json("/api/set-ctx-size", postWith({ model: id, ctx_size: 1024 }));
  assert.match(messageOf(size), /runs with ctx-size 512/);

  const mend = patchWith({ models: { [id]: { preset: null } } });
  assert.equal((await gateway.json("/api/desired?wait=true", mend)).status, 200);
  assert.equal(await gateway.ask(id), hello);
  await gateway.until("in force", () => applied().startsWith("True InForce"));
  const loaded = "True Loaded It is loaded with 1024 tokens";
  await gateway.until("loaded with it", () => conditionsOf(gateway, id)("Loaded").startsWith(loaded));

  // A model that has never worked has nothing to go back to.
  const fresh = await cacheTalker(folders, "acme/b");
  const broken = patchWith({ models: { [fresh]: { preset: { "cache-type-k": "q8_0" } } } });
  await gateway.json("/api/desired?wait=true", broken);
  assert.equal(codeOf(await gateway.json("/v1/chat/completions", chatWith(fresh))), "model_load_failed");
  await gateway.until("told", () => conditionsOf(gateway, fresh)("Loaded").startsWith("False LoadFailing"));
});
