// The bars of memory: what takes it, and what a load would change.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusBody } from "../../../src/client/index.ts";
import { loadText, memoryBars, takesText } from "../../../src/page/memory-bars.ts";
import type { Model } from "../../../src/page/model-row.ts";

const mebibyte = 1024 ** 2;

type Runtime = NonNullable<Model["runtime"]>;

function modelOf(id: string, runtime: Partial<Runtime>): Model {
  const usual = { bytes: 1, contextLength: 1, state: "unloaded", pid: null, memoryBytes: null };
  return {
    id,
    desired: true,
    conditions: [],
    runtime: { ...usual, need: null, takes: null, evicts: [], ...runtime },
  };
}

function needing(bytes: number): Runtime["need"] {
  return { bytes, source: "estimated", estimated: { Host: bytes }, measured: null };
}

const devices = [{ name: "Host", totalBytes: 1000, othersBytes: 300, limitBytes: 600 }];
const held = modelOf("a", { takes: { Host: 200 }, evicts: [] });
const other = modelOf("b", { takes: { Host: 250 } });

function partsOf(models: readonly Model[], previewed: string | null): unknown {
  const [bar] = memoryBars({ memory: { limits: {}, devices }, models } as unknown as StatusBody, previewed);
  return bar?.parts.map(({ kind, label, bytes }) => [kind, label, bytes]);
}

test("a bar has other programs, loaded models, what is free for models, and what is kept free", () => {
  assert.deepEqual(partsOf([held, modelOf("c", { need: needing(100) })], null), [
    ["others", "Other programs", 300],
    ["model", "a", 200],
    ["free", "Free for models", 400],
    ["kept", "Kept free", 100],
  ]);
  const greedy = modelOf("a", { takes: { Host: 700 } });
  assert.deepEqual(partsOf([greedy], null), [
    ["others", "Other programs", 300],
    ["model", "a", 700],
    ["kept", "Kept free", 100],
  ]);
});

test("a preview takes the place of the models that leave for it, and then what is free", () => {
  const small = modelOf("c", { need: needing(120) });
  assert.deepEqual(partsOf([held, small], "c"), [
    ["others", "Other programs", 300],
    ["model", "a", 200],
    ["coming", "c", 120],
    ["free", "Free for models", 280],
    ["kept", "Kept free", 100],
  ]);
  const large = modelOf("c", { need: needing(300), evicts: ["b"] });
  assert.deepEqual(partsOf([held, other, large], "c"), [
    ["others", "Other programs", 300],
    ["model", "a", 200],
    ["leaving", "b", 250],
    ["coming", "c", 50],
    ["free", "Free for models", 100],
    ["kept", "Kept free", 100],
  ]);
});

test("what a load would do, as text", () => {
  const need = needing(3 * mebibyte);
  assert.equal(loadText(held), null);
  assert.equal(loadText(modelOf("c", { need })), "c takes about 3 MiB; no other model is unloaded for it.");
  assert.equal(loadText(modelOf("c", { need, evicts: ["a", "b"] })), "c takes about 3 MiB; unloaded for it: a, b.");
  assert.equal(loadText(modelOf("c", { evicts: null })), "c does not fit beside the pinned models.");
  const measured = { ...need, source: "measured" } as Runtime["need"];
  assert.deepEqual(
    [modelOf("c", { need }), modelOf("c", { need: measured }), modelOf("c", { takes: { Host: 2 * mebibyte } })].map(
      takesText,
    ),
    ["about 3 MiB", "3 MiB", "2 MiB"],
  );
  assert.equal(takesText(modelOf("c", {})), "–");
});
