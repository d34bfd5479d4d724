// Identifiers: what is one, how files are tagged by the interface and by the router, and which model a name means.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fileStem,
  inferTag,
  isAuxiliary,
  isProjector,
  isRepo,
  matchName,
  matchWholeName,
  type NamedModel,
  nearestIds,
  normaliseName,
  parseModelId,
  plainestEndingIn,
  type RoutedModel,
  registeredId,
  repoOf,
  routerTag,
  shardOf,
} from "../../../src/core/ids.ts";

const ids: readonly (readonly [text: string, valid: boolean])[] = [
  ["ggml-org/gemma-3-270m-it-GGUF:Q8_0", true],
  ["local/starter-GGUF:Q8_0", true],
  ["acme/Qwen2.5:foo.Bar-1", true],
  ["acme/a:model with blanks", true],
  ["acme/a:x+y@z", true],
  ["acme/a", false],
  ["acme:Q8_0", false],
  ["acme/a:", false],
  ["/a:Q8_0", false],
  ["acme/:Q8_0", false],
  ["acme/a/b:Q8_0", false],
  ["acme/a:x/y", false],
  ["acme/../a:Q8_0", false],
  ["acme/a..b:Q8_0", false],
  ["acme/a--b:Q8_0", false],
  ["acme/.a:Q8_0", false],
  ["-acme/a:Q8_0", false],
  ["acme/a:.", false],
  ["acme/a:..", false],
  ["acme/a:x.", false],
  ["acme/a: x", false],
  ["acme/a:x\ny", false],
  ["acme/a:x;y", false],
  ["acme/a:x]", false],
  ["", false],
  [`a/${"b".repeat(244)}:${"c".repeat(235)}`, true],
  [`a/${"b".repeat(245)}:c`, false],
  [`a/b:${"c".repeat(236)}`, false],
];

for (const [text, valid] of ids) {
  test(`id: ${JSON.stringify(text).slice(0, 60)} (${text.length}) is ${valid ? "one" : "none"}`, () => {
    const parsed = parseModelId(text);
    assert.equal(parsed !== null, valid);
    if (parsed) assert.equal(`${repoOf(parsed)}:${parsed.tag}`, text);
  });
}

test("a repository's name", () => {
  for (const text of ["a/b", "Acme/Qwen2.5-7B_x"]) assert.ok(isRepo(text), text);
  for (const text of ["a", "a/b/c", "a/b:c", "a/..", "../a", "a/b--c", "a/ b"]) assert.ok(!isRepo(text), text);
});

/** The interface's tag, the router's: as seen with `--cache-list` on build 11669. */
const tags: readonly (readonly [path: string, ours: string, routers: string | null])[] = [
  ["alpha-Q4_K_M.gguf", "Q4_K_M", "Q4_K_M"],
  ["Model-Name.q4_k_m.gguf", "Q4_K_M", "Q4_K_M"],
  ["mymodel-F16.gguf", "mymodel-F16", "F16"],
  ["name-UD-IQ1_S.gguf", "name-UD-IQ1_S", "IQ1_S"],
  ["foo-UD_Q4.gguf", "foo-UD_Q4", "UD_Q4"],
  ["foo-Q8_0.Q4_0.gguf", "Q8_0", "Q4_0"],
  ["foo-7b.gguf", "foo-7b", "7B"],
  ["foo-1.0.gguf", "foo-1.0", "0"],
  ["zoo-Q5_K_M-MTP.gguf", "Q5_K_M", "MTP"],
  ["foo-Q8_0_v2.gguf", "Q8_0", "Q8_0_V2"],
  ["x-IQ4_0.gguf", "x-IQ4_0", "IQ4_0"],
  ["x-Q4_0_4_4.gguf", "x-Q4_0_4_4", "Q4_0_4_4"],
  ["x-Q4_K_S.gguf", "x-Q4_K_S", "Q4_K_S"],
  ["tiny.gguf", "tiny", null],
  ["Q4_K_M.gguf", "Q4_K_M", null],
  ["foo_Q8_0.gguf", "Q8_0", null],
  ["foo-.gguf", "foo-", null],
  ["foo-Q8+0.gguf", "foo-Q8+0", null],
  ["foo-Q4_K_M.GGUF", "Q4_K_M", null],
  ["Q8_0/foo.gguf", "foo", null],
  ["sub/dir/foo-Q8_0.gguf", "Q8_0", "Q8_0"],
  ["big-Q8_0-00001-of-00003.gguf", "Q8_0", "Q8_0"],
  ["big-Q8_0-00002-of-00003.gguf", "Q8_0", null],
  ["foo-00001-of-00002.gguf", "foo", null],
  ["mmproj-F16.gguf", "mmproj-F16", null],
  ["foo-MMPROJ-Q8_0.gguf", "Q8_0", "Q8_0"],
  ["mtp-foo-Q8_0.gguf", "Q8_0", null],
  ["MTP-foo-Q8_0.gguf", "Q8_0", "Q8_0"],
  ["imatrix.gguf", "imatrix", null],
  ["imatrix-Q8_0.gguf", "Q8_0", "Q8_0"],
];

for (const [path, ours, routers] of tags) {
  test(`interface 2, Model identifier: the tag of ${path}`, () =>
    assert.deepEqual([inferTag(path), routerTag(path)], [ours, routers]));
}

test("shards and stems", () => {
  assert.deepEqual(shardOf("d/x-00002-of-00010.gguf"), { index: 2, count: 10 });
  assert.equal(shardOf("x-2-of-10.gguf"), null);
  assert.equal(fileStem("d/e/x-Q8_0-00002-of-00010.gguf"), "x-Q8_0");
});

test("files that accompany a model", () => {
  for (const path of [
    "mmproj.gguf",
    "x-mmproj-F16.gguf",
    "mtp-x-Q8_0.gguf",
    "eagle3-x.gguf",
    "dflash-x.gguf",
    "imatrix.gguf",
    "x.imatrix.gguf",
  ])
    assert.ok(isAuxiliary(path), path);
  for (const path of ["x-Q8_0.gguf", "mmproj/x-Q8_0.gguf", "x-imatrix-Q8_0.gguf"]) assert.ok(!isAuxiliary(path), path);
  for (const path of ["mmproj.gguf", "X-MMProj-f16.GGUF"]) assert.ok(isProjector(path), path);
  for (const path of ["mmproj.bin", "x.gguf"]) assert.ok(!isProjector(path), path);
});

/** Seen on build 11669: what `GET /models` lists for a section of that name. */
const sections: readonly (readonly [section: string, id: string])[] = [
  ["acme/p:my-File", "acme/p:FILE"],
  ["acme/p:tiny", "acme/p:TINY"],
  ["acme/p:foo-UD-Q4_K_XL", "acme/p:Q4_K_XL"],
  ["acme/p:a.b", "acme/p:B"],
  ["acme/p:1.0", "acme/p:0"],
  ["acme/p:foo-", "acme/p:FOO-"],
  ["acme/p:a+b-c d", "acme/p:A+B-C D"],
  ["acme/p:x-Q4@1", "acme/p:X-Q4@1"],
  ["acme/p.q:x", "acme/p.q:X"],
  ["weird-name", "weird-name"],
  ["acme/a:b:c-d", "acme/a:b:D"],
];

for (const [section, id] of sections)
  test(`the router registers [${section}] as ${id}`, () => assert.equal(registeredId(section), id));

const models: readonly NamedModel[] = [
  { id: "acme/alpha:Q4_K_M", aliases: ["acme/alpha:alpha-Q4_K_M"] },
  { id: "acme/alpha:Q8_0", aliases: ["acme/alpha:alpha-Q8_0", "acme/alpha:Q4_0"] },
  { id: "acme/alpha:Q4_0", aliases: ["acme/alpha:alpha-Q4_0"] },
  { id: "acme/beta-GGUF:beta-7B-UD-Q4_K_XL", aliases: ["acme/beta-GGUF:Q4_K_XL"] },
  { id: "other/Gamma:tiny", aliases: [] },
  { id: "acme/Case:Q8_0", aliases: [] },
  { id: "Acme/case:Q8_0", aliases: [] },
];

const names: readonly (readonly [name: string, id: string | null])[] = [
  ["acme/alpha:Q8_0", "acme/alpha:Q8_0"],
  ["acme/alpha:q8_0", "acme/alpha:Q8_0"],
  ["acme/alpha:alpha-Q8_0.gguf", "acme/alpha:Q8_0"],
  ["acme/alpha:alpha-Q8_0.gguf:latest", "acme/alpha:Q8_0"],
  ["  acme/alpha:Q8_0 ", "acme/alpha:Q8_0"],
  ["acme/alpha:Q4_0", "acme/alpha:Q4_0"],
  ["acme/alpha:q4_0", "acme/alpha:Q4_0"],
  ["ALPHA:q4_k_m", "acme/alpha:Q4_K_M"],
  ["acme/beta-gguf", "acme/beta-GGUF:beta-7B-UD-Q4_K_XL"],
  ["acme/beta-GGUF:UD-Q4_K_XL", "acme/beta-GGUF:beta-7B-UD-Q4_K_XL"],
  ["gamma", "other/Gamma:tiny"],
  ["gamma:latest", "other/Gamma:tiny"],
  ["acme/Case:Q8_0", "acme/Case:Q8_0"],
  ["acme/CASE:Q8_0", null],
  ["alpha", null],
  ["acme/beta-GGUF:D-Q4_K_XL", null],
  ["nowhere", null],
  ["", null],
  [":", null],
  ["acme/alpha:", null],
];

for (const [name, id] of names) {
  test(`name: ${JSON.stringify(name)} means ${id ?? "nothing"}`, () => {
    const match = matchName(name, models);
    assert.equal(match.kind === "found" ? match.id : null, id);
  });
}

const files: readonly RoutedModel[] = [
  { id: "acme/foo:Q8_0", aliases: ["acme/foo:foo-Q8_0"], upstreamId: "acme/foo:Q8_0" },
  { id: "acme/foo:foo-Q6_K", aliases: [], upstreamId: "acme/foo:FOO_Q6_K" },
  { id: "acme/foo:foo-UD-Q6_K", aliases: [], upstreamId: "acme/foo:FOO_UD_Q6_K" },
  { id: "acme/bar:bar-UD-Q6_K", aliases: ["acme/bar:Q6_K"], upstreamId: "acme/bar:Q6_K" },
  { id: "acme/odd:model.gguf", aliases: [], upstreamId: "acme/odd:MODEL_GGUF" },
  { id: "acme/Case:Q8_0", aliases: [], upstreamId: "acme/Case:Q8_0" },
  { id: "Acme/case:Q8_0", aliases: [], upstreamId: "Acme/case:Q8_0" },
];

const wholeNames: readonly (readonly [name: string, id: string | null])[] = [
  ["acme/foo:Q8_0", "acme/foo:Q8_0"],
  ["ACME/foo:q8_0", "acme/foo:Q8_0"],
  [" acme/foo:Q8_0:latest ", "acme/foo:Q8_0"],
  ["acme/foo:foo-Q8_0.gguf", "acme/foo:Q8_0"],
  ["acme/foo:foo-q8_0", "acme/foo:Q8_0"],
  ["acme/foo:FOO_UD_Q6_K", "acme/foo:foo-UD-Q6_K"],
  ["acme/bar:Q6_K", "acme/bar:bar-UD-Q6_K"],
  ["acme/odd:model.gguf", "acme/odd:model.gguf"],
  ["acme/Case:Q8_0", "acme/Case:Q8_0"],
  ["acme/case:q8_0", null],
  ["acme/foo:Q6_K", null],
  ["acme/foo:UD-Q6_K", null],
  ["acme/bar:UD-Q6_K", null],
  ["acme/bar", null],
  ["bar", null],
  ["bar:Q6_K", null],
  ["bar:latest", null],
  ["", null],
];

for (const [name, id] of wholeNames) {
  test(`whole name: ${JSON.stringify(name)} is ${id ?? "nobody's"}`, () => {
    const match = matchWholeName(name, files);
    assert.equal(match.kind === "found" ? match.id : null, id);
  });
}

test("a whole name that two models have tells both", () => {
  const nearest = ["acme/Case:Q8_0", "Acme/case:Q8_0"];
  assert.deepEqual(matchWholeName("acme/case:Q8_0", files), { kind: "missing", nearest });
});

test("every model answers to its own id", () => {
  for (const { id } of models) assert.deepEqual(matchName(id, models), { kind: "found", id });
});

test("the end of a name means the plainest of those that end so", () => {
  const quants = ["r/m:m-UD-Q6_K", "r/m:m-Q6_K", "r/other:Q6_K"].map((id) => ({ id, aliases: [] }));
  assert.equal(plainestEndingIn(quants, "R/M:q6_k")?.id, "r/m:m-Q6_K");
  assert.equal(plainestEndingIn(quants, "r/m:UD-Q6_K")?.id, "r/m:m-UD-Q6_K");
  assert.equal(plainestEndingIn(quants, "r/m:IQ6_K"), undefined);
});

test("a mistyped name is told the nearest ids, the nearest first", () => {
  assert.equal(nearestIds("acme/alpa:Q8_0", models)[0], "acme/alpha:Q8_0");
  assert.ok(nearestIds("acme/alpa:Q8_0", models).length <= 3);
  assert.deepEqual(nearestIds("zzzz", models), []);
  assert.deepEqual(nearestIds("", models), []);
});

test("a name without its endings", () => {
  assert.deepEqual(["a:latest", "a.gguf", "a.GGUF:latest", "a:latest.gguf", "latest"].map(normaliseName), [
    "a",
    "a",
    "a",
    "a:latest",
    "latest",
  ]);
});
