// Which keys a section gets besides those of the document: what a model needs before it embeds or ranks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { poolings } from "../../../src/core/gguf-facts.ts";
import type { CachedModel } from "../../../src/plan/observed.ts";
import { parsePreset } from "../../../src/plan/preset-file.ts";
import { renderPreset } from "../../../src/plan/render-preset.ts";
import { canDoUnfitted, wantedSections } from "../../../src/plan/wanted-preset.ts";
import { cacheOf, desiredFrom, worldFile } from "./world.ts";

const id = "acme/a:Q8_0";

function model(facts: Partial<CachedModel>): CachedModel {
  const [found] = cacheOf([worldFile("acme/a/a-Q8_0.gguf")]).models;
  assert.ok(found);
  return { ...found, architecture: "llama", nCtxTrain: 8192, ...facts };
}

/** The keys of the model's section but its source; null where it has none. */
function section(
  facts: Partial<CachedModel>,
  preset?: Readonly<Record<string, string | number | boolean>>,
  known: ReadonlySet<string> | null = null,
): Record<string, string> | null {
  const desired = desiredFrom({ models: preset ? [{ id, preset }] : [] });
  const found = wantedSections(desired, [model(facts)], [], { knownOptions: known }, new Map()).find(
    ({ name }) => name === id,
  );
  if (!found) return null;
  const { "hf-repo": source, ...values } = Object.fromEntries(found.values);
  assert.equal(source, id);
  return values;
}

test("a model that talks needs no section; one that embeds is switched on, with a batch that holds a text", () => {
  assert.equal(section({}), null);
  assert.equal(section({ pooling: poolings.none }), null);
  assert.deepEqual(section({ pooling: poolings.mean }), { embeddings: "true", "ubatch-size": "2048" });
  assert.deepEqual(section({ pooling: poolings.cls, nCtxTrain: 1024 }), { embeddings: "true", "ubatch-size": "1024" });
  assert.deepEqual(section({ pooling: poolings.cls, nCtxTrain: 512 }), { embeddings: "true" });
  assert.deepEqual(section({ pooling: poolings.cls, nCtxTrain: null }), { embeddings: "true" });
  assert.deepEqual(section({ pooling: poolings.last }), { embeddings: "true" });
  assert.deepEqual(section({ pooling: poolings.rank }), { reranking: "true", "ubatch-size": "2048" });
  assert.deepEqual(section({ architecture: "bert", nCtxTrain: 512 }), { embeddings: "true", pooling: "mean" });
});

test("a person's own keys win, however they spell them", () => {
  const mean = { pooling: poolings.mean };
  assert.deepEqual(section(mean, { embeddings: "off" }), { embeddings: "off", "ubatch-size": "2048" });
  assert.deepEqual(section(mean, { embedding: "off", "ubatch-size": 256 }), { embedding: "off", "ubatch-size": "256" });
  assert.deepEqual(section(mean, { pooling: "cls" }), {
    embeddings: "true",
    "ubatch-size": "2048",
    pooling: "cls",
  });
});

test("a talking model that a person switches to embeddings gets a pooling: without one a chat would end its process", () => {
  assert.deepEqual(section({}, { embeddings: "on" }), { embeddings: "on", pooling: "mean" });
  assert.deepEqual(section({}, { embeddings: true }), { embeddings: "true", pooling: "mean" });
  assert.deepEqual(section({}, { embeddings: "on", pooling: "last" }), { embeddings: "on", pooling: "last" });
  assert.deepEqual(section({}, { embeddings: "off" }), { embeddings: "off" });
});

test("what the engine does not know is left out", () => {
  assert.equal(section({ pooling: poolings.mean }, undefined, new Set(["ctx-size"])), null);
});

test("what a person wrote into the file stays, where the document says nothing", () => {
  const wanted = wantedSections(
    desiredFrom({}),
    [model({ pooling: poolings.mean })],
    [],
    { knownOptions: null },
    new Map(),
  );
  const text = renderPreset(parsePreset(`[${id}]\nembedding = off\nub = 1024\n`), wanted, null);
  const own = text.slice(text.indexOf(`[${id}]`)).split("\n\n")[0];
  assert.equal(own, `[${id}]\n; model-gateway sets: hf-repo\nhf-repo = ${id}\nembedding = off\nub = 1024\n`.trimEnd());
  assert.equal(renderPreset(parsePreset(text), wanted, null), text, "written again it is the same");
});

test("a context size that the engine cannot run is raised, to no more than the model was trained for", () => {
  const sizes = (ctxSize: number, nCtxTrain: number | null): (string | undefined)[] => {
    const desired = desiredFrom({ context: { default: ctxSize }, models: [{ id, ctxSize }] });
    const sections = wantedSections(desired, [model({ nCtxTrain })], [], { knownOptions: null }, new Map());
    return ["*", id].map((name) => sections.find((entry) => entry.name === name)?.values.get("ctx-size"));
  };
  assert.deepEqual(sizes(1, 8192), ["256", "256"]);
  assert.deepEqual(sizes(255, null), ["256", "256"]);
  assert.deepEqual(sizes(257, 8192), ["257", "257"]);
  assert.deepEqual(sizes(1, 128), ["256", "128"]);
  assert.deepEqual(sizes(9000, 8192), ["9000", "9000"]);
});

test("a router without devices fits nothing where each model has a context, and no worker has a part", () => {
  const preset = "[*]\nctx-size = 8192\n";
  const can = (document: Parameters<typeof desiredFrom>[0], text: string): boolean =>
    canDoUnfitted(desiredFrom(document), parsePreset(text));
  assert.equal(can({ context: { default: 8192 } }, preset), true);
  assert.equal(can({ models: [{ id, ctxSize: 4096 }] }, preset), false);
  assert.equal(can({ context: { default: 8192 } }, ""), false, "the file could not be written");
  const workers = { rpc: { mode: "rpc", workers: ["worker:50052"] } } as const;
  assert.equal(can({ context: { default: 8192 }, ...workers }, preset), false);
  // Lines of the file's owner.
  assert.equal(can({ context: { default: 8192 } }, `${preset}rpc = worker:50052\n`), false);
  assert.equal(can({ context: { default: 8192 } }, `${preset}fit = on\n`), false);
});

test("while such a router runs, models fit again by the preset as soon as there is something to fit", () => {
  const fitOf = (document: Parameters<typeof desiredFrom>[0], endpoints: readonly string[], isUnfitted = true) => {
    const router = { knownOptions: null, isUnfitted };
    const sections = wantedSections(desiredFrom(document), [model({})], endpoints, router, new Map());
    return sections.flatMap(({ name, values }) => (values.get("fit") === "on" ? [name] : []));
  };
  const defaulted = { context: { default: 8192 } };
  const workers = { rpc: { mode: "rpc", workers: ["worker:50052"] } } as const;
  assert.deepEqual(fitOf(defaulted, []), []);
  assert.deepEqual(fitOf({}, []), [id]);
  assert.deepEqual(fitOf({ models: [{ id, ctxSize: 512 }] }, []), [], "it would end for nothing");
  assert.deepEqual(fitOf({ ...defaulted, ...workers }, ["worker:50052"]), ["*"]);
  assert.deepEqual(fitOf({}, [], false), []);
});
