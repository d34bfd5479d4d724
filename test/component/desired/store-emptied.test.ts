// An edit that empties a list of models: what it took out is written down, so that prune leaves it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type DesiredStore, openDesiredStore } from "../../../src/desired/store.ts";
import { patch, removal, yaml } from "../../support/documents.ts";
import { scratchFolder } from "../../support/scratch.ts";

describe("a list of models that is emptied", () => {
  const full = yaml("version: 1\nprune: true\nmodels: [acme/a:Q8_0, acme/b:Q8_0]\n");
  const empty = yaml("version: 1\nprune: true\nmodels: []\n");

  async function quiet(stateDir: string): Promise<{ store: DesiredStore; told: object[] }> {
    const told: object[] = [];
    const store = await openDesiredStore({
      stateDir,
      now: () => 0,
      warn: (_message, fields) => void told.push(fields),
    });
    return { store, told };
  }

  it("is remembered over a restart, also where calls have put in others, and told", async (t) => {
    const stateDir = await scratchFolder(t);
    const { store, told } = await quiet(stateDir);
    await store.applyFile(full, "file");
    await store.change(patch({ "acme/called:Q8_0": {} }), "api");
    const { document } = await store.applyFile(empty, "file");
    assert.deepEqual(document.models, [{ id: "acme/called:Q8_0" }]);
    assert.deepEqual([document.spared, told], [["acme/a:Q8_0", "acme/b:Q8_0"], [{ models: document.spared }]]);
    const again = (await quiet(stateDir)).store;
    assert.deepEqual(again.current().document, document);
    // Named again: whoever takes it out by its name the next time means it.
    const put = await again.change(patch({ "ACME/a:q8_0": {} }), "api");
    assert.deepEqual(put.document.spared, ["acme/b:Q8_0"]);
    await again.change(patch({ "ACME/a:q8_0": null }), "api");
    assert.deepEqual(again.current().document.spared, ["acme/b:Q8_0"]);
    const { document: allowed } = await again.change({ kind: "patch", patch: { allowEmpty: true } }, "api");
    assert.deepEqual(allowed.spared, []);
  });

  it("is remembered where the file has no list any more, which takes along what calls have put in", async (t) => {
    const { store } = await quiet(await scratchFolder(t));
    await store.applyFile(full, "file");
    await store.change(patch({ "acme/called:Q8_0": {} }), "api");
    await store.applyFile(yaml("version: 1\nprune: true\n"), "file");
    const { document } = await store.change(patch({ "acme/other:Q8_0": {} }), "api");
    assert.deepEqual(document.spared, ["acme/a:Q8_0", "acme/b:Q8_0", "acme/called:Q8_0"]);
  });

  it("counts whoever empties it: PUT, PATCH of the list, of each model; and a look in advance says the same", async (t) => {
    for (const change of [
      { kind: "put", input: { version: 1, prune: true, models: [] } },
      { kind: "put", input: { version: 1, prune: true } },
      { kind: "patch", patch: { models: null } },
      { kind: "patch", patch: { models: [] } },
      patch({ "acme/a:Q8_0": null, "acme/b:Q8_0": null }),
    ] as const) {
      const { store } = await quiet(await scratchFolder(t));
      await store.applyFile(full, "file");
      assert.deepEqual(store.preview(change).spared, ["acme/a:Q8_0", "acme/b:Q8_0"], JSON.stringify(change));
      await store.change(change, "api");
      const next = await store.change(patch({ "acme/c:Q8_0": {} }), "api");
      assert.deepEqual(next.document.spared, ["acme/a:Q8_0", "acme/b:Q8_0"], JSON.stringify(change));
    }
  });

  it("is another matter than a list that is changed, or one that was meant to be emptied", async (t) => {
    const { store } = await quiet(await scratchFolder(t));
    await store.applyFile(full, "file");
    await store.applyFile(yaml("version: 1\nprune: true\nmodels: [acme/c:Q8_0]\n"), "file");
    assert.deepEqual(store.current().document.spared, []);
    await store.applyFile(yaml("version: 1\nprune: true\nallowEmpty: true\n"), "file");
    assert.deepEqual(store.current().document.spared, []);
    // A removal takes its model itself.
    const other = await quiet(await scratchFolder(t));
    await other.store.change(patch({ "acme/a:Q8_0": {} }), "api");
    const removed = await other.store.edit(() => ({ patch: { models: { "acme/a:Q8_0": null } }, removal }), "api");
    assert.deepEqual(removed.document.spared, []);
  });
});
