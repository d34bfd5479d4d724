// Removing a model for good, on the real engine: its files, its section, the router's list; and that no crash loses it.
import assert from "node:assert/strict";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cacheTalker, makeFolders, makeTalkerFolders, talker } from "../support/folders.ts";
import { eventsOf, startTestGateway, untilLoaded } from "../support/gateway.ts";
import { holdAnswer } from "../support/held-answer.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { codeOf, contextLengths } from "../support/own-calls.ts";
import { documentModels } from "../support/own-pulls.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";

test("interface 4, Remove: files, section and the router's entry are gone when the call answers", async (t) => {
  const folders = await makeFolders(t);
  const [alpha, beta] = [await cacheTalker(folders, "acme/alpha"), await cacheTalker(folders, "acme/beta")];
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${alpha}", ctxSize: 1024, keep: true }, "${beta}"]\n`,
  });
  await gateway.converged();
  await gateway.ask(alpha);
  await gateway.ask(beta);
  const { length } = modelBytes(talkingModel("acme/alpha"));

  const { status, body } = await gateway.json("/api/remove-model", postWith({ model: "ACME/alpha:q8_0:latest" }));
  assert.deepEqual(
    [status, body],
    [200, { ok: true, model: alpha, deleted_files: 2, freed_bytes: length, removed_preset_section: true }],
  );
  assert.deepEqual(await readdir(folders.cacheDir), ["models--acme--beta"]);
  assert.doesNotMatch(await readFile(join(folders.stateDir, "router.preset.ini"), "utf8"), /alpha|ctx-size/);
  assert.deepEqual(await contextLengths(gateway), { [beta]: 8192 });
  await untilLoaded(gateway, beta);
  assert.deepEqual(await documentModels(gateway), [beta]);
  assert.deepEqual((await gateway.json("/api/desired")).body["removals"], []);
  assert.deepEqual(gateway.gateway.status().sync, "Synced");
  const order = eventsOf(gateway.gateway, "action.finished")
    .map(({ data }) => (data as { kind: string }).kind)
    .slice(-3);
  assert.deepEqual(order, ["model.remove", "preset.write", "router.reload"]);
  assert.deepEqual(eventsOf(gateway.gateway, "action.failed"), []);

  const again = await gateway.json("/api/remove-model", postWith({ model: alpha }));
  assert.deepEqual([again.status, codeOf(again)], [404, "model_not_found"]);
  const other = await gateway.json("/api/remove-model", postWith({ model: beta }));
  assert.deepEqual([other.status, other.body["removed_preset_section"]], [200, false]);
  assert.deepEqual(await readdir(folders.cacheDir), []);
});

test("interface 4, Remove: 404 where the cache does not hold it, and the document stays", async (t) => {
  const gateway = await startTestGateway(t, { yaml: "version: 1\nmodels: [acme/absent:Q8_0]\n" });
  for (const model of ["acme/absent:Q8_0", "acme/none:Q8_0"]) {
    const { status, body } = await gateway.json("/api/remove-model", postWith({ model }));
    assert.deepEqual([status, (body["error"] as { code: string }).code], [404, "model_not_found"]);
  }
  assert.deepEqual(await documentModels(gateway), ["acme/absent:Q8_0"]);
});

test("interface 4, Remove: an answer in flight is finished first, and nobody is let in after it", async (t) => {
  const folders = await makeTalkerFolders(t);
  const gateway = await startTestGateway(t, { folders });
  await gateway.converged();
  const held = await holdAnswer(t, gateway, talker);
  const remove = (): ReturnType<typeof gateway.json> => gateway.json("/api/remove-model", postWith({ model: talker }));
  const removing = remove();
  await gateway.until("it is marked", ({ removals }) => removals.length > 0);
  assert.equal((await gateway.json("/beta/v1/chat/completions", chatWith(talker))).status, 404);
  const joined = remove();
  held.release();
  assert.deepEqual(await held.answer, { text: answersOf("talker").long, done: true, error: null });
  const [first, second] = await Promise.all([removing, joined]);
  assert.deepEqual([first.status, second.status, second.body], [200, 200, first.body]);
  assert.deepEqual(await readdir(folders.cacheDir), []);
});

test("interface 4, Remove: one that is noted under suspend is kept over a restart, shown, and carried out after it", async (t) => {
  const folders = await makeFolders(t);
  const [alpha, beta] = [await cacheTalker(folders, "acme/alpha"), await cacheTalker(folders, "acme/beta")];
  const yaml = `version: 1\nsuspend: true\nmodels: [{ id: "${alpha}", ctxSize: 512 }, { id: "${beta}", ctxSize: 512 }]\n`;
  const first = await startTestGateway(t, { folders, yaml });
  for (const model of [alpha, beta]) {
    const { status, body } = await first.json("/api/remove-model", postWith({ model }));
    assert.deepEqual([status, (body["error"] as { code: string }).code], [409, "suspended"]);
  }
  const marks = (await first.json("/api/desired")).body["removals"] as { id: string; by: string }[];
  assert.deepEqual(
    marks.map(({ id, by }) => [id, by]),
    [alpha, beta].map((id) => [id, "http:POST /api/remove-model"]),
  );
  assert.deepEqual(
    first.gateway.status().removals.map(({ id }) => id),
    [alpha, beta],
  );
  assert.deepEqual(await contextLengths(first), {});
  // Wanted again: its mark goes.
  await first.json("/api/desired", patchWith({ models: { [beta]: {} } }));
  assert.deepEqual(
    first.gateway.status().removals.map(({ id }) => id),
    [alpha],
  );
  await first.gateway.stop();

  // As a crash leaves it in the midst of the deletion: blobs are noted, and the links are gone.
  const statePath = join(folders.stateDir, "desired.json");
  const saved = JSON.parse(await readFile(statePath, "utf8")) as { removals: { blobs: string[] }[] };
  const repo = join(folders.cacheDir, "models--acme--alpha");
  const [mark] = saved.removals;
  assert.ok(mark);
  mark.blobs = await readdir(join(repo, "blobs"));
  await writeFile(statePath, JSON.stringify(saved));
  await rm(join(repo, "snapshots"), { recursive: true });
  await folders.writeConfig(yaml.replace("suspend: true", "suspend: false"));
  const second = await startTestGateway(t, { folders });
  await second.converged();
  assert.deepEqual(await readdir(folders.cacheDir), ["models--acme--beta"]);
  assert.deepEqual(second.gateway.status().removals, []);
  assert.deepEqual(Object.keys(await contextLengths(second)), [beta]);
  assert.equal(await second.ask(beta), answersOf("acme/beta").hello);
});
