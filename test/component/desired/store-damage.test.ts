// State files that are damaged: set aside, nothing lost, and the document goes on from what is left.
import assert from "node:assert/strict";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { type DesiredStore, openDesiredStore } from "../../../src/desired/store.ts";
import { plainStateFiles, type StateFiles, untouchedFiles } from "../../../src/state/state-folder.ts";
import { scratchFolder } from "../../support/scratch.ts";

const file = { version: 1, models: { "acme/a:Q8_0": {}, "acme/b:Q8_0": { ctxSize: 512 } } };

interface Damaged {
  readonly stateDir: string;
  readonly warnings: string[];
  open(files?: StateFiles): Promise<DesiredStore>;
  /** Texts of the files set aside, by the file's name. */
  aside(): Promise<Record<string, string>>;
}

/** A state folder after a file was applied and a model added by a call. */
async function used(t: TestContext): Promise<Damaged> {
  const stateDir = await scratchFolder(t);
  const warnings: string[] = [];
  const open = (files = plainStateFiles): Promise<DesiredStore> =>
    openDesiredStore({
      stateDir,
      files,
      now: Date.now,
      warn: (_message, fields) => void warnings.push((fields as { path: string }).path),
    });
  const store = await open();
  await store.applyFile(file, "file:1");
  await store.change({ kind: "patch", patch: { models: { "acme/c:Q8_0": {} } } }, "api");
  return {
    stateDir,
    warnings,
    open,
    aside: async () => {
      const names = (await readdir(stateDir)).filter((name) => name.includes(".corrupt-"));
      const texts = await Promise.all(
        names.map(async (name) => [name.replace(/\.corrupt-\d+$/, ""), await readFile(join(stateDir, name), "utf8")]),
      );
      return Object.fromEntries(texts) as Record<string, string>;
    },
  };
}

function ids(store: DesiredStore): string[] {
  return store.current().document.models.map(({ id }) => id);
}

const damages = [
  ["half a file", `{"generation": 7, "tree": {"ver`],
  ["an empty file", ""],
  ["another program's JSON", `{"name": "x"}`],
  ["a list", "[]"],
  ["a tree that is no document", JSON.stringify({ generation: 7, tree: { version: 1, models: 3 }, owners: {} })],
  ["an unknown key", JSON.stringify({ generation: 7, tree: { version: 1, unknown: true }, owners: {} })],
] as const;

describe("a damaged desired.json", () => {
  for (const [what, text] of damages) {
    it(`${what}: is set aside, and the file as last applied takes its place`, async (t) => {
      const { stateDir, warnings, open, aside } = await used(t);
      await writeFile(join(stateDir, "desired.json"), text);
      const store = await open();
      assert.deepEqual(await aside(), { "desired.json": text });
      assert.equal(warnings.length, 1);
      // The file has not changed since: without its last state as the base nothing of it would be applied.
      await store.applyFile(file, "file:1");
      assert.deepEqual(ids(store), ["acme/a:Q8_0", "acme/b:Q8_0"]);
      await store.change({ kind: "patch", patch: { prune: true } }, "api");
      assert.deepEqual(ids(await open()), ["acme/a:Q8_0", "acme/b:Q8_0"]);
      assert.equal(warnings.length, 1);
    });
  }

  it("takes over an edit that was made while it was damaged", async (t) => {
    const { stateDir, open } = await used(t);
    await writeFile(join(stateDir, "desired.json"), "{");
    const store = await open();
    await store.applyFile({ version: 1, models: { "acme/b:Q8_0": {}, "acme/z:Q8_0": {} } }, "file:2");
    assert.deepEqual(ids(store), ["acme/b:Q8_0", "acme/z:Q8_0"]);
  });

  it("is read without being touched by a look from outside", async (t) => {
    const { stateDir, open } = await used(t);
    await writeFile(join(stateDir, "desired.json"), "{");
    const before = await readdir(stateDir);
    const store = await open(untouchedFiles);
    assert.deepEqual([store.current().tree, store.differencesFromFile()], [file, []]);
    await store.applyFile({ version: 1, models: { "acme/z:Q8_0": {} } }, "file:2");
    assert.deepEqual(ids(store), ["acme/z:Q8_0"]);
    assert.deepEqual(await readdir(stateDir), before);
    assert.equal(await readFile(join(stateDir, "desired.json"), "utf8"), "{");
  });
});

describe("a missing desired.json", () => {
  it("is the file as last applied", async (t) => {
    const { stateDir, open } = await used(t);
    await rm(join(stateDir, "desired.json"));
    const store = await open();
    await store.applyFile(file, "file:1");
    assert.deepEqual(ids(store), ["acme/a:Q8_0", "acme/b:Q8_0"]);
    assert.deepEqual((await open()).current().tree, file);
  });
});

describe("a damaged last-applied.json", () => {
  for (const text of ["{", `{"version": 1, "unknown": true}`]) {
    it(`${text}: is set aside, and the document keeps everything`, async (t) => {
      const { stateDir, open, aside } = await used(t);
      await writeFile(join(stateDir, "last-applied.json"), text);
      const store = await open();
      assert.deepEqual(await aside(), { "last-applied.json": text });
      assert.equal(store.hasAppliedFile(), false);
      const { generation } = store.current();
      await store.applyFile(file, "file:1");
      assert.deepEqual(ids(store), ["acme/a:Q8_0", "acme/b:Q8_0", "acme/c:Q8_0"]);
      assert.equal(store.current().generation, generation);
      await store.applyFile({ version: 1, models: { "acme/a:Q8_0": {} } }, "file:2");
      assert.deepEqual(ids(store), ["acme/a:Q8_0", "acme/c:Q8_0"]);
    });
  }
});

describe("both damaged", () => {
  it("starts from the file", async (t) => {
    const { stateDir, open, aside } = await used(t);
    await writeFile(join(stateDir, "desired.json"), "{");
    await writeFile(join(stateDir, "last-applied.json"), "{");
    const store = await open();
    assert.deepEqual(Object.keys(await aside()).sort(), ["desired.json", "last-applied.json"]);
    await store.applyFile(file, "file:1");
    assert.deepEqual(ids(store), ["acme/a:Q8_0", "acme/b:Q8_0"]);
  });
});
