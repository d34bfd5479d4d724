// The desired document: generations, conditions on changes, the three-way merge of the file, and its state files.
import assert from "node:assert/strict";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import type { DesiredState, DocumentTree } from "../../../src/desired/document/document.ts";
import { type DesiredStore, openDesiredStore } from "../../../src/desired/store.ts";
import { patch, removal, yaml } from "../../support/documents.ts";
import { refusal, scratchFolder } from "../../support/scratch.ts";

async function open(stateDir: string): Promise<DesiredStore> {
  return openDesiredStore({
    stateDir,
    now: () => Date.parse("2026-01-02T03:04:05Z"),
    warn: (message) => assert.fail(message),
  });
}

async function fresh(t: TestContext): Promise<{ stateDir: string; store: DesiredStore }> {
  const stateDir = join(await scratchFolder(t), "state");
  await mkdir(stateDir);
  return { stateDir, store: await open(stateDir) };
}

function sizes(state: DesiredState): Record<string, number | "auto" | undefined> {
  return Object.fromEntries(state.document.models.map(({ id, ctxSize }) => [id, ctxSize]));
}

describe("changing the document", () => {
  it("makes a generation of a change, and none of a change that changes nothing", async (t) => {
    const { store } = await fresh(t);
    const seen: number[] = [];
    store.onChange(({ generation }) => void seen.push(generation));
    assert.equal(store.current().generation, 0);
    const first = await store.change(patch({ "acme/a:Q8_0": { ctxSize: 1024 } }), "api");
    const same = await store.change(patch({ "acme/a:Q8_0": { ctxSize: 1024 } }), "api");
    const put = await store.change(
      { kind: "put", input: { version: 1, models: [{ id: "acme/a:Q8_0", ctxSize: 1024 }] } },
      "api",
    );
    assert.deepEqual([first.generation, same.generation, put.generation], [1, 1, 1]);
    assert.equal(same.etag, first.etag);
    const second = await store.change(patch({ "acme/a:Q8_0": { ctxSize: 2048 } }), "api");
    assert.equal(second.generation, 2);
    assert.notEqual(second.etag, first.etag);
    assert.deepEqual(seen, [1, 2]);
  });

  it("honours If-Match: the etag of now, one in a list, or any", async (t) => {
    const { store } = await fresh(t);
    const { etag } = await store.change(patch({ "acme/a:Q8_0": {} }), "api");
    const error = await refusal(store.change(patch({ "acme/b:Q8_0": {} }), "api", `"g0-000000000000"`));
    assert.equal(error.code, "precondition_failed");
    assert.ok(error.message.includes(etag));
    assert.throws(() => store.preview(patch({}), `"g0-000000000000"`), { code: "precondition_failed" });
    assert.deepEqual(store.preview(patch({}), etag), store.current().document);
    assert.equal(store.current().generation, 1);
    await store.change(patch({ "acme/b:Q8_0": {} }), "api", `"other", ${etag}`);
    await store.change(patch({ "acme/c:Q8_0": {} }), "api", "*");
    assert.deepEqual(Object.keys(sizes(store.current())), ["acme/a:Q8_0", "acme/b:Q8_0", "acme/c:Q8_0"]);
  });

  it("lets exactly one of two win that change the same document on the same condition", async (t) => {
    const { store } = await fresh(t);
    const { etag } = store.current();
    const outcomes = await Promise.allSettled(
      [1024, 2048, 4096].map((ctxSize) => store.change(patch({ "acme/a:Q8_0": { ctxSize } }), "api", etag)),
    );
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "rejected", "rejected"],
    );
    assert.deepEqual(sizes(store.current()), { "acme/a:Q8_0": 1024 });
  });

  it("takes concurrent changes one after the other, each on top of the one before", async (t) => {
    const { stateDir, store } = await fresh(t);
    const ids = Array.from({ length: 25 }, (_, index) => `acme/m${index}:Q8_0`);
    await Promise.all(ids.map((id) => store.change(patch({ [id]: {} }), "api")));
    assert.equal(store.current().generation, 25);
    assert.deepEqual(Object.keys(sizes(await reopened(stateDir))), ids);
  });

  it("refuses an invalid document with all that is wrong, and goes on after it", async (t) => {
    const { store } = await fresh(t);
    const bad = store.change({ kind: "put", input: { version: 2, models: ["nonsense"], extra: true } }, "api");
    const good = store.change(patch({ "acme/a:Q8_0": {} }), "api");
    const error = await refusal(bad);
    assert.equal(error.code, "invalid_document");
    for (const part of ["version: must be 1", "models[0]", "extra: unknown key"])
      assert.ok(error.message.includes(part), error.message);
    assert.equal((await good).generation, 1);
    assert.equal((await refusal(store.change({ kind: "patch", patch: [] }, "api"))).code, "invalid_request");
    assert.deepEqual(
      store.preview(patch({ "acme/b:Q8_0": {} })).models.map(({ id }) => id),
      ["acme/a:Q8_0", "acme/b:Q8_0"],
    );
    assert.equal(store.current().generation, 1);
  });

  it("keeps the old document, in memory and on disk, where the state folder cannot be written", async (t) => {
    const { stateDir, store } = await fresh(t);
    const before = await store.change(patch({ "acme/a:Q8_0": {} }), "api");
    await rename(stateDir, `${stateDir}.away`);
    await writeFile(stateDir, "");
    const error = await refusal(store.change(patch({ "acme/b:Q8_0": {} }), "api"));
    assert.equal(error.code, "state_unwritable");
    assert.ok(error.message.includes(join(stateDir, "desired.json")));
    assert.deepEqual(store.current(), before);
    await rm(stateDir);
    await rename(`${stateDir}.away`, stateDir);
    assert.deepEqual(await reopened(stateDir), before);
    assert.equal((await store.change(patch({ "acme/b:Q8_0": {} }), "api")).generation, 2);
  });
});

describe("applying the file", () => {
  it("changes what its author changed and leaves what was set elsewhere", async (t) => {
    const { store } = await fresh(t);
    await store.applyFile(yaml("version: 1\nmodels:\n  - acme/a:Q8_0\n  - acme/b:Q8_0\n"), "file:1");
    await store.change(patch({ "acme/a:Q8_0": { ctxSize: 4096 }, "acme/c:Q8_0": {} }), "api");
    await store.applyFile(
      yaml("version: 1\nmodels:\n  - acme/a:Q8_0\n  - id: acme/d:Q8_0\n    ctxSize: 512\n"),
      "file:2",
    );
    assert.deepEqual(sizes(store.current()), { "acme/a:Q8_0": 4096, "acme/c:Q8_0": undefined, "acme/d:Q8_0": 512 });
    assert.deepEqual(store.differencesFromFile(), [
      { path: "models.acme/a:Q8_0.ctxSize", file: null, desired: 4096, setBy: "api", at: "2026-01-02T03:04:05.000Z" },
      { path: "models.acme/c:Q8_0", file: null, desired: {}, setBy: "api", at: "2026-01-02T03:04:05.000Z" },
    ]);
  });

  it("lets the later of two win that set the same key", async (t) => {
    const { store } = await fresh(t);
    const file = (ctxSize: number): DocumentTree =>
      yaml(`version: 1\nmodels:\n  - id: acme/a:Q8_0\n    ctxSize: ${ctxSize}\n`);
    await store.applyFile(file(1024), "file:1");
    await store.change(patch({ "acme/a:Q8_0": { ctxSize: 2048 } }), "api");
    await store.applyFile(file(1024), "file:1");
    assert.deepEqual(sizes(store.current()), { "acme/a:Q8_0": 2048 });
    await store.applyFile(file(8192), "file:2");
    assert.deepEqual(sizes(store.current()), { "acme/a:Q8_0": 8192 });
  });

  it("is harmless to repeat after a crash between the document and the note of what was applied", async (t) => {
    const { stateDir, store } = await fresh(t);
    const applied = join(stateDir, "last-applied.json");
    await store.applyFile(yaml("version: 1\nmodels:\n  - acme/a:Q8_0\n  - acme/b:Q8_0\n"), "file:1");
    const before = await readFile(applied, "utf8");
    await store.change(patch({ "acme/c:Q8_0": {} }), "api");
    const edited = yaml("version: 1\nmodels:\n  - acme/b:Q8_0\n  - id: acme/d:Q8_0\n    ctxSize: 512\n");
    const after = await store.applyFile(edited, "file:2");
    await writeFile(applied, before);
    const restarted = await open(stateDir);
    assert.deepEqual(await restarted.applyFile(edited, "file:2"), after);
    assert.deepEqual(Object.keys(sizes(after)), ["acme/b:Q8_0", "acme/c:Q8_0", "acme/d:Q8_0"]);
    assert.deepEqual((JSON.parse(await readFile(applied, "utf8")) as { tree: object }).tree, edited);
  });

  it("is refused where it does not go together with what was set elsewhere", async (t) => {
    const { stateDir, store } = await fresh(t);
    await store.applyFile(yaml("version: 1\nmodels: [acme/a:Q8_0, acme/b:Q8_0]\n"), "file:1");
    const before = await store.change(patch({ "acme/b:Q8_0": { aliases: ["mine"] } }), "api");
    const edited = yaml("version: 1\nmodels: [{ id: acme/a:Q8_0, aliases: [mine] }, acme/b:Q8_0]\n");
    assert.equal((await refusal(store.applyFile(edited, "file:2"))).code, "invalid_document");
    assert.deepEqual(await reopened(stateDir), before);
    await store.change(patch({ "acme/b:Q8_0": { aliases: null } }), "api");
    assert.deepEqual((await store.applyFile(edited, "file:2")).document.models[0], {
      id: "acme/a:Q8_0",
      aliases: ["mine"],
    });
  });

  it("tries again where the note of what was applied could not be written", async (t) => {
    const { stateDir, store } = await fresh(t);
    const tree = yaml("version: 1\nmodels:\n  - acme/a:Q8_0\n");
    await mkdir(join(stateDir, "last-applied.json", "in-the-way"), { recursive: true });
    assert.equal((await refusal(store.applyFile(tree, "file:1"))).code, "state_unwritable");
    assert.equal(store.hasAppliedFile(), false);
    await rm(join(stateDir, "last-applied.json"), { recursive: true });
    assert.equal((await store.applyFile(tree, "file:1")).generation, 1);
    assert.equal((await open(stateDir)).hasAppliedFile(), true);
  });
});

describe("edits", () => {
  it("are made from the document as it is when their turn comes", async (t) => {
    const { store } = await fresh(t);
    const raise = (): Promise<DesiredState> =>
      store.edit(({ document }) => {
        const before = document.models.find(({ id }) => id === "acme/a:Q8_0")?.ctxSize ?? 0;
        return { patch: { models: { "acme/a:Q8_0": { ctxSize: Number(before) + 1 } } } };
      }, "api");
    await Promise.all(Array.from({ length: 20 }, raise));
    assert.deepEqual(sizes(store.current()), { "acme/a:Q8_0": 20 });
    assert.equal((await store.edit(() => null, "api")).generation, 20);
    const error = await refusal(store.edit(() => ({ patch: { models: { nonsense: {} } } }), "api"));
    assert.equal(error.code, "invalid_document");
  });

  it("know what the file names", async (t) => {
    const { store } = await fresh(t);
    assert.equal(store.inFile("acme/a:Q8_0"), undefined);
    await store.applyFile(yaml("version: 1\nmodels: [{ id: acme/a:Q8_0, ctxSize: 512 }]\n"), "file:1");
    await store.change(patch({ "acme/b:Q8_0": {} }), "api");
    const said = ["acme/a:Q8_0", "acme/b:Q8_0", "toString"].map(store.inFile);
    assert.deepEqual(said, [{ ctxSize: 512 }, undefined, undefined]);
  });
});

describe("removals", () => {
  const mark = (store: DesiredStore): Promise<DesiredState> =>
    store.edit(() => ({ patch: { models: { "acme/a:Q8_0": null } }, removal }), "api");

  it("are set together with the change, are a generation of their own, and survive a restart", async (t) => {
    const { stateDir, store } = await fresh(t);
    await store.change(patch({ "acme/a:Q8_0": { ctxSize: 512 }, "acme/b:Q8_0": {} }), "api");
    const marked = await mark(store);
    assert.deepEqual(
      [marked.generation, marked.document.removals, sizes(marked)],
      [2, [removal], { "acme/b:Q8_0": undefined }],
    );
    assert.deepEqual((await reopened(stateDir)).document, marked.document);
    await store.noteRemoval("acme/a:Q8_0", { blobs: ["b".repeat(64)], commits: ["c"] });
    assert.deepEqual((await reopened(stateDir)).document.removals, [
      { ...removal, blobs: ["b".repeat(64)], commits: ["c"] },
    ]);
    await store.endRemoval("acme/a:Q8_0");
    await store.noteRemoval("acme/a:Q8_0", { blobs: [], commits: [] });
    assert.deepEqual([store.current().generation, store.current().document.removals], [2, []]);
    assert.deepEqual((await reopened(stateDir)).document.removals, []);
  });

  it("of a model that the document does not name are a change too", async (t) => {
    const { store } = await fresh(t);
    const marked = await store.edit(() => ({ patch: {}, removal }), "api");
    assert.deepEqual([marked.generation, marked.document.removals], [1, [removal]]);
  });

  it("end when the document names the model again, by any of its names, whoever writes it", async (t) => {
    const { store } = await fresh(t);
    const file = (text: string): Promise<DesiredState> =>
      store.applyFile(yaml(`version: 1\nmodels: [${text}]\n`), "file");
    await file("acme/a:Q8_0");
    await mark(store);
    // The file says what it said before: that is no news.
    assert.equal((await file("acme/a:Q8_0")).document.removals.length, 1);
    assert.equal((await store.change(patch({ "acme/c:Q8_0": {} }), "api")).document.removals.length, 1);
    assert.equal(store.preview(patch({ "ACME/A:a-q8_0": {} })).removals.length, 0);
    assert.equal((await store.change(patch({ "ACME/A:a-q8_0": {} }), "api")).document.removals.length, 0);
    await store.change(patch({ "ACME/A:a-q8_0": null }), "api");
    await mark(store);
    assert.equal((await file("{ id: acme/a:Q8_0, ctxSize: 256 }")).document.removals.length, 0);
  });

  it("that are mangled are not believed", async (t) => {
    const { stateDir, store } = await fresh(t);
    await mark(store);
    const path = join(stateDir, "desired.json");
    const saved = JSON.parse(await readFile(path, "utf8")) as { removals: unknown[] };
    const mangled = [{ ...removal, files: "all" }, { ...removal, repo: 5 }, { id: removal.id }, "acme/a:Q8_0", null];
    await writeFile(path, JSON.stringify({ ...saved, removals: [...mangled, removal] }));
    assert.deepEqual((await reopened(stateDir)).document.removals, [removal]);
    await writeFile(path, JSON.stringify({ ...saved, removals: {} }));
    assert.deepEqual((await reopened(stateDir)).document.removals, []);
  });
});

async function reopened(stateDir: string): Promise<DesiredState> {
  return (await open(stateDir)).current();
}
