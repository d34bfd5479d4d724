// What would surprise whoever asks: a trial that becomes the real thing, a model that its file names and that is not there,
// a name that was given and is shown nowhere.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { patchWith, postWith } from "../support/requests.ts";

test("what is tried, taken out and given another name", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: `version: 1\nmodels: [${model}]\n` });
  const ids = async (): Promise<string[]> =>
    ((await gateway.json("/v1/models")).body["data"] as { id: string }[]).map(({ id }) => id);

  await t.test("a trial on a route that has none is refused and does nothing", async () => {
    for (const [path, body] of [
      ["/api/eject-model?dryRun=true", { model }],
      ["/api/set-ctx-size?dryRun=true", { model, ctx_size: 700 }],
      ["/api/reconcile?dryRun=true", {}],
    ] as const) {
      const answer = await gateway.json(path, postWith(body));
      assert.deepEqual([answer.status, codeOf(answer)], [400, "invalid_request"], path);
      assert.match(messageOf(answer), /unknown query parameter dryRun/, path);
    }
    for (const query of ["dryrun=true", "dryRun=yes", "dryRun"])
      assert.equal((await gateway.json(`/api/remove-model?${query}`, postWith({ model }))).status, 400, query);
    assert.deepEqual(await ids(), [model]);
    const { body } = await gateway.json("/api/desired");
    assert.deepEqual((body["document"] as { models: unknown }).models, [model]);
  });

  await t.test("a trial of a removal finds the model, and removes nothing", async () => {
    const trial = (name: string): ReturnType<typeof gateway.json> =>
      gateway.json("/api/remove-model?dryRun=true", postWith({ model: name }));
    const found = await trial("ACME/alpha:Q8_0");
    const nothing = { ok: true, model, deleted_files: 0, freed_bytes: 0, removed_preset_section: false };
    assert.deepEqual([found.status, found.body], [200, nothing]);
    assert.deepEqual([(await trial("nope")).status, (await trial("alpha")).status], [404, 404]);
    assert.deepEqual(await ids(), [model]);
    assert.deepEqual(gateway.gateway.status().removals, []);
  });

  await t.test("a name given by copy is in both families' lists", async () => {
    const copied = await fetch(`${gateway.url}/api/copy`, postWith({ source: model, destination: "my-bot" }));
    assert.equal(copied.status, 200);
    await copied.body?.cancel();
    const { models } = (await gateway.json("/api/tags")).body as { models: { name: string; digest: string }[] };
    assert.deepEqual(models.map(({ name }) => name).toSorted(), [model, "my-bot"].toSorted());
    assert.equal(new Set(models.map(({ digest }) => digest)).size, 1);
    const { data } = (await gateway.json("/v1/models")).body as { data: { id: string; aliases: string[] }[] };
    assert.deepEqual([data.length, data[0]?.aliases.includes("my-bot")], [1, true]);
  });

  await t.test("a difference from the file names who wrote last in it", async () => {
    await gateway.json("/api/rpc/mode", postWith({ mode: "single" }));
    await gateway.json("/api/desired", patchWith({ rpc: { workers: ["127.0.0.1:50999"] } }));
    const { body } = await gateway.json("/api/desired");
    const differences = body["differsFromFile"] as { path: string; setBy: string }[];
    assert.equal(differences.find(({ path }) => path === "rpc")?.setBy, "http:PATCH /api/desired");
    await gateway.json("/api/desired", patchWith({ rpc: null }));
  });

  await t.test("a model that was removed and stands in the file says so", async () => {
    assert.equal((await gateway.json("/api/remove-model", postWith({ model }))).status, 200);
    const answer = await gateway.json("/api/eject-model", postWith({ model }));
    assert.deepEqual([answer.status, codeOf(answer)], [404, "model_not_found"]);
    assert.match(messageOf(answer), /is in gateway\.yaml, but was taken out .* by http:POST \/api\/remove-model/);
  });
});
