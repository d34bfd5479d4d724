// What a call may not put into the document, and what an older document may have had.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { type DesiredStore, openDesiredStore } from "../../../src/desired/store.ts";
import { patch } from "../../support/documents.ts";
import { refusal, scratchFolder } from "../../support/scratch.ts";

const a = "acme/a:Q8_0";
const fields = {
  chatTemplate: "./a.jinja",
  lora: [{ source: "./x.gguf", scale: 0.5 }],
  mmproj: "./p.gguf",
  draft: "acme/b:Q8_0",
};
const fromFile = { version: 1, models: { [a]: { ctxSize: 512, ...fields }, "acme/b:Q8_0": {} } };

async function open(
  stateDir: string,
  presetAllow: readonly string[] = [],
  told: unknown[] = [],
): Promise<DesiredStore> {
  const warn = (_message: string, fields: object): void => void told.push(Object.values(fields));
  return openDesiredStore({ stateDir, now: Date.now, warn, presetAllow: new Set(presetAllow) });
}

async function applied(t: TestContext): Promise<{ stateDir: string; store: DesiredStore }> {
  const stateDir = await scratchFolder(t);
  const store = await open(stateDir);
  await store.applyFile(fromFile, "file:1");
  return { stateDir, store };
}

describe("fields that only the file may set", () => {
  for (const [field, value] of Object.entries(fields)) {
    it(`${field}: a call can neither set nor change it`, async (t) => {
      const { store } = await applied(t);
      const before = store.current();
      const other = Array.isArray(value) ? [{ source: "./y.gguf" }] : `${value}x`;
      const input = { version: 1, models: [{ id: "acme/new:Q8_0", [field]: value }] };
      for (const change of [
        patch({ [a]: { [field]: other } }),
        patch({ "acme/b:Q8_0": { [field]: value } }),
        patch({ [a.toUpperCase()]: { [field]: value }, [a]: null }),
        { kind: "put", input } as const,
      ]) {
        assert.equal((await refusal(store.change(change, "api"))).code, "file_only");
        assert.throws(() => store.preview(change), { code: "file_only" });
      }
      const edit = store.edit(() => ({ patch: { models: { [a]: { [field]: other } } } }), "api");
      assert.match((await refusal(edit)).message, new RegExp(`${field} can only be set in gateway\\.yaml`));
      assert.deepEqual(store.current(), before);
    });
  }

  it("stay as they are beside other changes, and in a PUT that repeats them", async (t) => {
    const { store } = await applied(t);
    await store.change(patch({ [a]: { ctxSize: 1024 } }), "api");
    const put = { version: 1, models: [{ id: a, ctxSize: 2048, ...fields }, "acme/b:Q8_0"] };
    await store.change({ kind: "put", input: put }, "api");
    assert.deepEqual(store.current().document.models[0], { id: a, ctxSize: 2048, ...fields });
  });

  it("can be taken out by a call, and come back as the file has them", async (t) => {
    const { store } = await applied(t);
    await store.change(patch({ [a]: { lora: null } }), "api");
    assert.equal(store.current().document.models[0]?.lora, undefined);
    await store.change(patch({ [a]: null }), "api");
    await store.change(patch({ [a]: { lora: fields.lora } }), "api");
    assert.deepEqual(store.current().document.models.find(({ id }) => id === a)?.lora, fields.lora);
  });
});

describe("preset keys that are no longer allowed", () => {
  it("are left out of a saved document, and nothing else is lost", async (t) => {
    const stateDir = await scratchFolder(t);
    const lifted = await open(stateDir, ["log-file"]);
    await lifted.applyFile({ version: 1, models: { [a]: { preset: { "log-file": "x", threads: 2 } } } }, "file:1");
    await lifted.change(patch({ "acme/call:Q8_0": { ctxSize: 512, preset: { "log-file": "y" } } }), "api");
    const path = join(stateDir, "desired.json");
    // As an older version would have let it in: no setting lifts this one.
    await writeFile(path, (await readFile(path, "utf8")).replace('"log-file": "y"', '"mcp-servers-json": "{}"'));

    const told: unknown[] = [];
    const store = await open(stateDir, [], told);
    assert.deepEqual(told, [[`${a}.preset.log-file`], ["acme/call:Q8_0.preset.mcp-servers-json"]]);
    const models = [
      { id: a, preset: { threads: 2 } },
      { id: "acme/call:Q8_0", ctxSize: 512, preset: {} },
    ];
    assert.deepEqual(store.current().document.models, models);
    assert.deepEqual((await open(stateDir)).current().tree, store.current().tree);
    await store.change(patch({ "acme/call:Q8_0": { ctxSize: 1024 } }), "api");
    assert.equal((await open(stateDir)).current().tree["version"], 1);
    assert.doesNotMatch(await readFile(path, "utf8"), /mcp-servers-json/);
  });

  it("are refused in calls and in the file alike, unless the setting allows them", async (t) => {
    const store = await open(await scratchFolder(t));
    const change = patch({ [a]: { preset: { "log-file": "x" } } });
    assert.match((await refusal(store.change(change, "api"))).message, /--preset-allow log-file/);
    const tree = { version: 1, models: { [a]: { preset: { "log-file": "x" } } } };
    assert.equal((await refusal(store.applyFile(tree, "file:1"))).code, "invalid_document");
    const lifted = await open(await scratchFolder(t), ["log-file"]);
    await lifted.change(change, "api");
    assert.deepEqual(lifted.current().document.models[0]?.preset, { "log-file": "x" });
  });
});
