// A gateway.yaml that a call gives: the applied file, beside the watched one.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import type { DesiredState } from "../../../src/desired/document/document.ts";
import { readText } from "../../../src/desired/parse-apart.ts";
import { type DesiredStore, openDesiredStore } from "../../../src/desired/store.ts";
import { patch, yaml } from "../../support/documents.ts";
import { refusal, scratchFolder } from "../../support/scratch.ts";
import { naming, startSourcing } from "../../support/sourcing.ts";

const at = "2026-01-02T03:04:05.000Z";

function open(stateDir: string): Promise<DesiredStore> {
  return openDesiredStore({ stateDir, now: () => Date.parse(at), warn: (message) => assert.fail(message) });
}

async function fresh(t: TestContext): Promise<{ stateDir: string; store: DesiredStore }> {
  const stateDir = join(await scratchFolder(t), "state");
  await mkdir(stateDir);
  return { stateDir, store: await open(stateDir) };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

async function apply(store: DesiredStore, text: string, revision?: string, ifMatch?: string): Promise<DesiredState> {
  const file = await readText(Buffer.from(text), new Set());
  return store.change({ kind: "apply", file: { ...file, revision } }, "http:PUT /api/desired", ifMatch);
}

const a = "acme/a:Q8_0";
const b = "acme/b:Q8_0";
const ids = ({ document }: DesiredState): string[] => document.models.map(({ id }) => id);

describe("a text that a call applies", () => {
  it("is the applied file, with its hash and revision, also after a restart", async (t) => {
    const { stateDir, store } = await fresh(t);
    assert.equal(store.current().applied, null);
    const text = `# of the team\n${naming("a")}`;
    const state = await apply(store, text, "3f2a9c1");
    const applied = { sha256: hashOf(text), revision: "3f2a9c1", by: "http:PUT /api/desired", at };
    assert.deepEqual([state.generation, ids(state), state.applied], [1, [a], applied]);
    assert.deepEqual(store.differencesFromFile(), []);
    assert.deepEqual((await open(stateDir)).current(), store.current());
  });

  it("is seen together with the document that it makes", async (t) => {
    const { store } = await fresh(t);
    const seen: unknown[] = [];
    store.onChange(({ applied }) => void seen.push([applied?.sha256, store.differencesFromFile()]));
    await apply(store, naming("a"));
    assert.deepEqual(seen, [[hashOf(naming("a")), []]]);
  });

  it("is noted without a new generation where only a comment or the revision differs", async (t) => {
    const { store } = await fresh(t);
    await apply(store, naming("a"), "one");
    const heard: number[] = [];
    store.onChange(({ generation }) => void heard.push(generation));
    const text = `${naming("a")}# more\n`;
    const state = await apply(store, text, "two");
    assert.deepEqual([state.generation, state.applied?.sha256, state.applied?.revision], [1, hashOf(text), "two"]);
    assert.deepEqual(heard, []);
  });

  it("merges what its author changed: other calls' changes stay", async (t) => {
    const { store } = await fresh(t);
    await apply(store, naming("a"));
    await store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    const state = await apply(store, naming("a", "b"));
    assert.deepEqual(state.document.models, [{ id: a, ctxSize: 512 }, { id: b }]);
    assert.deepEqual(
      store.differencesFromFile().map(({ path, setBy }) => [path, setBy]),
      [[`models.${a}.ctxSize`, "api"]],
    );
    assert.deepEqual(ids(await apply(store, naming("b"))), [b]);
  });

  it("is refused whole: with the place of what is wrong, on another document, or where it names files", async (t) => {
    const { store } = await fresh(t);
    await apply(store, naming("a"));
    const before = store.current();
    const typo = await refusal(apply(store, `version: 1\nmodels:\n  - id: ${b}\n    ctxsize: 5\n`));
    assert.deepEqual(
      [typo.code, typo.message],
      ["invalid_document", "line 4, column 5: models[0].ctxsize: unknown key (did you mean ctxSize?)"],
    );
    assert.equal((await refusal(apply(store, naming("b"), "x", `"g0-000000000000"`))).code, "precondition_failed");
    const named = `version: 1\nmodels: [{ id: ${b}, chatTemplate: ./b.jinja }]\n`;
    assert.equal((await refusal(apply(store, named))).code, "file_only");
    assert.deepEqual(store.current(), before);
  });

  it("is tried out without a change", async (t) => {
    const { store } = await fresh(t);
    await apply(store, naming("a"));
    const before = store.current();
    const file = { tree: yaml(naming("b")), sha256: null };
    assert.deepEqual(
      store.preview({ kind: "apply", file }).models.map(({ id }) => id),
      [b],
    );
    assert.deepEqual(store.current(), before);
  });
});

describe("an applied text beside the watched file", () => {
  it("stays over restarts, until the watched file is saved with another content", async (t) => {
    const first = await startSourcing(t, { text: naming("a") });
    assert.equal(first.store.current().applied?.sha256, hashOf(naming("a")));
    await apply(first.store, naming("b"), "3f2a9c1");
    assert.deepEqual(first.names(), ["b"]);
    // Neither a save of the same content nor a restart is an edit.
    await writeFile(first.path, naming("a"));
    await first.source.check();
    await first.source.close();
    const second = await startSourcing(t, { root: first.root });
    assert.deepEqual([second.names(), second.source.status().reason], [["b"], "Applied"]);
    assert.equal(second.store.current().applied?.revision, "3f2a9c1");
    // Merged against what was applied last: the text of the call.
    await writeFile(first.path, naming("a", "c"));
    await second.becomes("a", "c");
    const { applied } = second.store.current();
    assert.deepEqual([applied?.sha256, applied?.revision], [hashOf(naming("a", "c")), null]);
  });

  it("reads a last-applied.json of the version before, which was the tree alone", async (t) => {
    const { stateDir, store } = await fresh(t);
    await store.applyFile(yaml(naming("a")), "file:1", { sha256: hashOf(naming("a")) });
    await store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    const path = join(stateDir, "last-applied.json");
    const { tree } = JSON.parse(await readFile(path, "utf8")) as { tree: object };
    await writeFile(path, JSON.stringify(tree));
    const reopened = await open(stateDir);
    assert.deepEqual(reopened.current().applied, { sha256: null, revision: null, by: "file", at: null });
    const state = await reopened.applyFile(yaml(naming("a")), "file:1", { sha256: hashOf(naming("a")) });
    assert.deepEqual(
      [state.generation, state.document.models, state.applied?.sha256],
      [2, [{ id: a, ctxSize: 512 }], hashOf(naming("a"))],
    );
  });
});
