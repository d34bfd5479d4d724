// The history as data: every document that is kept can be had again, and what is kept is bounded.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Json, JsonObject } from "../../../../src/core/json.ts";
import { redacted } from "../../../../src/core/redact.ts";
import {
  caughtUp,
  fieldsOf,
  type History,
  mostBytes,
  mostKept,
  treeOf,
  withDrift,
  withDriftMended,
  withEdit,
  withOutcome,
} from "../../../../src/desired/history/entries.ts";
import { readHistory } from "../../../../src/desired/history/read-history.ts";

function timeAt(second: number): string {
  return new Date(Date.UTC(2026, 0, 2, 3, 0, second)).toISOString();
}

const empty: History = { head: { generation: 0, tree: { version: 1 } }, base: 0, entries: [], drifts: [] };

function edited(history: History, tree: JsonObject, generation = history.head.generation + 1): History {
  const edit = { generation, at: timeAt(generation), by: "api", key: null, peer: null, client: null };
  return withEdit(history, { ...edit, file: null, removal: null }, tree, history.head.tree);
}

const plain = { noNullPrototype: true } as const;
const trees = fc.dictionary(
  fc.constantFrom("context", "models", "prune", "rpc"),
  fc.oneof(
    fc.constantFrom<Json[]>(true, 512, "text", ["a", "b"], {}),
    fc.dictionary(
      fc.constantFrom("acme/a:Q8_0", "default", "__proto__"),
      fc.constantFrom<Json[]>({}, { ctxSize: 1 }, 7, []),
      plain,
    ),
  ),
  plain,
) as fc.Arbitrary<JsonObject>;

describe("documents of the history", () => {
  it("are what they were, at every generation, whatever was edited", () => {
    fc.assert(
      fc.property(fc.array(trees, { maxLength: 12 }), (all) => {
        let history = empty;
        for (const tree of all) history = edited(history, tree);
        assert.deepEqual(treeOf(history, 0), empty.head.tree);
        for (const [index, tree] of all.entries()) assert.deepEqual(treeOf(history, index + 1), tree);
        assert.equal(treeOf(history, all.length + 1), null);
        assert.deepEqual(readHistory(JSON.parse(JSON.stringify(history))), JSON.parse(JSON.stringify(history)));
      }),
      { numRuns: 2000 },
    );
  });

  it("are kept for the last hundred generations, and the one before", () => {
    let history = empty;
    for (let generation = 1; generation <= 150; generation++) history = edited(history, { version: 1, n: generation });
    assert.deepEqual([history.entries.length, history.entries[0]?.generation, history.base], [mostKept, 51, 50]);
    assert.deepEqual(treeOf(history, 50), { version: 1, n: 50 });
    assert.equal(treeOf(history, 49), null);
  });

  it("are kept as far as they fit", () => {
    let history = empty;
    const large = (mark: number): string => String(mark).padEnd(200_000, "x");
    for (let generation = 1; generation <= 30; generation++) history = edited(history, { text: large(generation) });
    assert.ok(JSON.stringify(history.entries).length <= mostBytes + 30);
    assert.ok(history.entries.length > 3, String(history.entries.length));
    assert.deepEqual(treeOf(history, history.base), { text: large(history.base) });
  });
});

describe("a document that is not the one recorded last", () => {
  it("is caught up with: the end of the process came between", () => {
    const history = caughtUp(edited(empty, { a: 1 }), 4, { a: 1, b: 2 }, timeAt(9));
    const last = history.entries.at(-1);
    assert.deepEqual(
      [last?.generation, last?.by, last?.changes],
      [4, "unknown", [{ path: ["b"], before: undefined, after: 2 }]],
    );
    assert.deepEqual(treeOf(history, 1), { a: 1 });
    assert.equal(caughtUp(history, 4, { a: 1, b: 2 }, timeAt(10)).entries.length, 2);
  });
});

describe("the outcome of a generation", () => {
  const pending = { outcome: "pending", problem: null } as const;
  const converged = { outcome: "converged", problem: null } as const;

  it("is the first that it has for good, with the time that it took", () => {
    const one = edited(empty, { a: 1 });
    assert.deepEqual([one.entries[0]?.outcome, one.entries[0]?.ms], ["pending", null]);
    assert.equal(withOutcome(one, 1, pending, timeAt(2)), one);
    const stuck = withOutcome(one, 1, { outcome: "stuck", problem: "not found" }, timeAt(3));
    assert.deepEqual([stuck.entries[0]?.problem, stuck.entries[0]?.ms], ["not found", 2000]);
    const done = withOutcome(stuck, 1, converged, timeAt(5));
    assert.deepEqual(
      [done.entries[0]?.outcome, done.entries[0]?.ms, done.entries[0]?.problem],
      ["converged", 4000, null],
    );
    assert.equal(withOutcome(done, 1, { outcome: "stuck", problem: "later" }, timeAt(6)), done);
    assert.equal(withOutcome(done, 7, converged, timeAt(6)), done);
  });

  it("is superseded where another came first", () => {
    const two = edited(edited(empty, { a: 1 }), { a: 2 });
    assert.deepEqual(
      two.entries.map(({ outcome, ms }) => [outcome, ms]),
      [
        ["superseded", 1000],
        ["pending", null],
      ],
    );
  });
});

describe("drift", () => {
  const item = (key: string) => ({ kind: "model.pull", key, reason: "ModelAbsent", message: `pull ${key}` });

  it("is one entry from when it was noticed until all is as it should be", () => {
    let history = withDrift(empty, 0, [item("a")], timeAt(1));
    history = withDrift(history, 0, [item("a"), item("b")], timeAt(2));
    assert.deepEqual(
      history.drifts.map(({ at, what, mendedAt }) => [at, what.map(({ key }) => key), mendedAt]),
      [[timeAt(1), ["a", "b"], null]],
    );
    history = withDriftMended(history, timeAt(3));
    assert.equal(history.drifts[0]?.mendedAt, timeAt(3));
    assert.equal(withDriftMended(history, timeAt(4)), history);
    history = withDrift(history, 0, [item("a")], timeAt(5));
    assert.equal(history.drifts.length, 2);
  });

  it("is bounded", () => {
    const all = Array.from({ length: 300 }, (_, index) => item(`m${index}`));
    let history = withDrift(empty, 0, all, timeAt(0));
    assert.equal(history.drifts[0]?.what.length, 20);
    for (let count = 1; count <= 120; count++)
      history = withDrift(withDriftMended(history, timeAt(count)), 0, [item("a")], timeAt(count));
    assert.deepEqual([history.drifts.length, history.drifts.at(-1)?.at], [mostKept, timeAt(120)]);
  });
});

it("fields are listed one by one, also of a part that came or went as a whole", () => {
  const whole = { path: ["models", "acme/a:Q8_0"], after: { ctxSize: 1, preset: { temp: 2 }, aliases: ["x"] } };
  assert.deepEqual(fieldsOf(whole), [
    { path: ["models", "acme/a:Q8_0", "ctxSize"], after: 1 },
    { path: ["models", "acme/a:Q8_0", "preset", "temp"], after: 2 },
    { path: ["models", "acme/a:Q8_0", "aliases"], after: ["x"] },
  ]);
  assert.deepEqual(fieldsOf({ path: ["models", "b"], before: {} }), [{ path: ["models", "b"], before: {} }]);
  const both = { path: ["a"], before: 1, after: { b: 1 } };
  assert.deepEqual(fieldsOf(both), [both]);
});

describe("a damaged history", () => {
  it("is none where a change in it is damaged", () => {
    const text = JSON.parse(JSON.stringify(edited(empty, { n: 1 }))) as { entries: { changes: unknown }[] };
    (text.entries[0] as { changes: unknown }).changes = "gone";
    assert.equal(readHistory(text), null);
  });

  it("is none without its head", () => {
    for (const value of [
      null,
      5,
      [],
      {},
      { head: {} },
      { head: { generation: -1, tree: {} } },
      { head: { generation: 1, tree: [] } },
    ])
      assert.equal(readHistory(value), null);
  });
});

it("secrets are in no entry and in no document", () => {
  const secret = {
    models: { "acme/a:Q8_0": { preset: { "api-token": "s3cret", "pass.key": 271828, "image-max-tokens": 512 } } },
  };
  const inText = { speech: "https://me:pass@host/k/abc?x mgw_0123456789abcdefghij hf_ABCDEFGHIJKLMNOPQRST" };
  const history = edited(edited(empty, secret), inText);
  const text = JSON.stringify(history);
  for (const part of ["s3cret", "271828", "me:pass", "abc?", "mgw_0", "hf_A"]) assert.ok(!text.includes(part), part);
  assert.deepEqual(treeOf(history, 1), {
    models: { "acme/a:Q8_0": { preset: { "api-token": redacted, "pass.key": redacted, "image-max-tokens": 512 } } },
  });
  assert.equal(
    history.entries[1]?.changes.find(({ path }) => path[0] === "speech")?.after,
    `https://${redacted}@host/k/${redacted}?x ${redacted} ${redacted}`,
  );
});
