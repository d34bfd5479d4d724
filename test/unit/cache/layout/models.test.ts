// What the files of a repository's folder are: models, their names, and which of them the router lists by itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { aliasTags, groupModels, type ModelGroup, type Snapshot } from "../../../../src/cache/layout/models.ts";
import { isAuxiliary, registeredId, routerTag } from "../../../../src/core/ids.ts";

const main = "a".repeat(40);
const other = "b".repeat(40);

/** A `!` at a path's end: its blob is gone. */
function snapshot(commit: string, paths: readonly string[]): Snapshot {
  return {
    commit,
    files: paths.map((path) => ({
      path: path.replace(/!$/, ""),
      size: path.endsWith("!") ? null : 10,
      modifiedAt: 0,
      blob: "x",
      damage: null,
    })),
  };
}

/** Tag, files, whole or not, the router's tag, the tag by which it is asked. */
type Row = readonly [tag: string, files: string, complete: boolean, routerTag: string | null, upstreamTag: string];

function rows(groups: readonly ModelGroup[]): Row[] {
  const sorted = groups.toSorted((a, b) => (a.tag < b.tag ? -1 : 1));
  return sorted.map(({ tag, files, complete, routerTag: listed, upstreamTag }) => [
    tag,
    files.map((file) => file.path).join(" "),
    complete,
    listed,
    upstreamTag,
  ]);
}

const cases: readonly (readonly [why: string, snapshots: readonly Snapshot[], rows: readonly Row[]])[] = [
  [
    "one file per quant",
    [snapshot(main, ["x-Q4_K_M.gguf", "x-Q8_0.gguf"])],
    [
      ["Q4_K_M", "x-Q4_K_M.gguf", true, "Q4_K_M", "Q4_K_M"],
      ["Q8_0", "x-Q8_0.gguf", true, "Q8_0", "Q8_0"],
    ],
  ],
  [
    "a file that the router does not list",
    [snapshot(main, ["tiny.gguf"])],
    [["tiny", "tiny.gguf", true, null, "TINY"]],
  ],
  [
    "a name that the router would cut",
    [snapshot(main, ["foo@Bar-x y.gguf"])],
    [["foo@Bar-x y", "foo@Bar-x y.gguf", true, null, "FOO_BAR_X_Y"]],
  ],
  [
    "a name with an escape sequence",
    [snapshot(main, ["w\u001b[2J.gguf"])],
    [["w_[2J", "w\u001b[2J.gguf", true, null, "W__2J"]],
  ],
  [
    "two files of one tag",
    [snapshot(main, ["two-Q4_K_M.gguf", "one-Q4_K_M.gguf"])],
    [
      ["Q4_K_M", "one-Q4_K_M.gguf", true, null, "Q4_K_M_2"],
      ["two-Q4_K_M", "two-Q4_K_M.gguf", true, null, "TWO_Q4_K_M"],
    ],
  ],
  [
    "the plainest name keeps the short tag",
    [snapshot(main, ["x-UD-Q8_0.gguf", "x-Q8_0.gguf"])],
    [
      ["Q8_0", "x-Q8_0.gguf", true, null, "Q8_0_2"],
      ["x-UD-Q8_0", "x-UD-Q8_0.gguf", true, null, "X_UD_Q8_0"],
    ],
  ],
  [
    "our tag is the router's tag of another file",
    [snapshot(main, ["a-Q8_0.Q4_0.gguf", "b-Q4_0-v2.gguf"])],
    [
      ["Q4_0", "b-Q4_0-v2.gguf", true, "V2", "V2"],
      ["Q8_0", "a-Q8_0.Q4_0.gguf", true, "Q4_0", "Q4_0"],
    ],
  ],
  [
    "equal names in two folders",
    [snapshot(main, ["Q4/foo.gguf", "Q8/foo.gguf"])],
    [
      ["Q8-foo", "Q8/foo.gguf", true, null, "Q8_FOO"],
      ["foo", "Q4/foo.gguf", true, null, "FOO"],
    ],
  ],
  [
    "names that differ by case alone",
    [snapshot(main, ["FOO.gguf", "Foo.gguf", "foo.gguf"])],
    [
      ["FOO", "FOO.gguf", true, null, "FOO"],
      ["Foo-2", "Foo.gguf", true, null, "FOO_2"],
      ["foo-3", "foo.gguf", true, null, "FOO_3"],
    ],
  ],
  [
    "all shards",
    [snapshot(main, ["x-Q8_0-00002-of-00002.gguf", "x-Q8_0-00001-of-00002.gguf"])],
    [["Q8_0", "x-Q8_0-00001-of-00002.gguf x-Q8_0-00002-of-00002.gguf", true, "Q8_0", "Q8_0"]],
  ],
  [
    "a shard is missing",
    [snapshot(main, ["x-Q8_0-00001-of-00003.gguf", "x-Q8_0-00003-of-00003.gguf"])],
    [["Q8_0", "x-Q8_0-00001-of-00003.gguf x-Q8_0-00003-of-00003.gguf", false, "Q8_0", "Q8_0"]],
  ],
  [
    "as many shards as there should be, but not those",
    [snapshot(main, ["x-Q8_0-00000-of-00002.gguf", "x-Q8_0-00001-of-00002.gguf"])],
    [["Q8_0", "x-Q8_0-00000-of-00002.gguf x-Q8_0-00001-of-00002.gguf", false, "Q8_0", "Q8_0"]],
  ],
  [
    "one shard of one beside a whole file",
    [snapshot(main, ["x-Q8_0-00001-of-00001.gguf", "x-Q8_0.gguf"])],
    [
      ["Q8_0", "x-Q8_0-00001-of-00001.gguf", true, null, "Q8_0_2"],
      ["x-Q8_0", "x-Q8_0.gguf", true, null, "X_Q8_0"],
    ],
  ],
  ["a link without its blob", [snapshot(main, ["x-Q8_0.gguf!"])], [["Q8_0", "x-Q8_0.gguf", false, "Q8_0", "Q8_0"]]],
  [
    "a revision that refs/main does not name",
    [snapshot(other, ["x-Q8_0.gguf"])],
    [["Q8_0", "x-Q8_0.gguf", true, null, "Q8_0"]],
  ],
  [
    "a file of two revisions is one model",
    [snapshot(main, ["x-Q8_0.gguf"]), snapshot(other, ["x-Q8_0.gguf", "x-Q4_0.gguf"])],
    [
      ["Q4_0", "x-Q4_0.gguf", true, null, "Q4_0"],
      ["Q8_0", "x-Q8_0.gguf", true, "Q8_0", "Q8_0"],
    ],
  ],
  [
    "whole in another revision only: the router's own id is taken by the broken one",
    [snapshot(main, ["x-Q8_0.gguf!"]), snapshot(other, ["x-Q8_0.gguf"])],
    [["Q8_0", "x-Q8_0.gguf", true, null, "Q8_0_2"]],
  ],
  [
    "files that accompany a model are none",
    [snapshot(main, ["mmproj-F16.gguf", "x-mmproj.gguf", "mtp-x-Q8_0.gguf", "imatrix.gguf"])],
    [],
  ],
];

for (const [why, snapshots, expected] of cases)
  test(why, () => assert.deepEqual(rows(groupModels(snapshots, main)), expected));

test("without refs/main, or with one that is no commit, the router lists nothing", () => {
  const snapshots = [snapshot("v1", ["x-Q8_0.gguf"])];
  for (const named of [null, "v1", main])
    assert.deepEqual(rows(groupModels(snapshots, named)), [["Q8_0", "x-Q8_0.gguf", true, null, "Q8_0"]]);
});

test("the projector of 16 bits goes before others, one without its blob is none", () => {
  const projector = (paths: readonly string[]): string | undefined =>
    groupModels([snapshot(main, ["x-Q8_0.gguf", ...paths])], main)[0]?.projector?.path;
  assert.equal(projector(["mmproj-BF16.gguf", "mmproj-F16.gguf", "mmproj-Q8_0.gguf"]), "mmproj-F16.gguf");
  assert.equal(projector(["mmproj-Q8_0.gguf", "mmproj-bf16.gguf"]), "mmproj-bf16.gguf");
  assert.equal(projector(["mmproj-F16.gguf!"]), undefined);
  assert.equal(projector([]), undefined);
});

test("other names of a model", () => {
  const [group] = groupModels([snapshot(main, ["x-Q5_K_M-MTP.gguf"])], main);
  assert.ok(group);
  assert.deepEqual([group.tag, aliasTags(group)], ["Q5_K_M", ["x-Q5_K_M-MTP", "MTP"]]);
});

const paths = [
  "x-Q8_0.gguf",
  "x-UD-Q8_0.gguf",
  "X-q8_0.gguf",
  "Q8_0.gguf",
  "x-Q4_K_M.gguf!",
  "sub/x-Q8_0.gguf",
  "sub-x.gguf",
  "sub/x.gguf",
  "x.gguf",
  "a b.gguf",
  "a_b.gguf",
  "a-b.gguf",
  "foo.Bar-1.gguf",
  "y-Q8_0-00001-of-00002.gguf",
  "y-Q8_0-00002-of-00002.gguf",
  "y-Q8_0.gguf",
  "mmproj-F16.gguf",
  "modèle.gguf",
  "modéle.gguf",
  "x-Q8_0_2.gguf",
  "Q8_0_2.gguf",
];
const anySnapshots = fc
  .tuple(fc.subarray(paths), fc.subarray(paths))
  .map(([a, b]) => [snapshot(main, a), snapshot(other, b)]);

test("each model has names of its own, and none is lost", () => {
  fc.assert(
    fc.property(anySnapshots, (snapshots) => {
      const groups = groupModels(snapshots, main);
      const tags = groups.map((group) => group.tag.toLowerCase());
      assert.deepEqual(tags, [...new Set(tags)]);
      const upstream = groups.map((group) => group.upstreamTag);
      assert.deepEqual(upstream, [...new Set(upstream)]);
      // Shards that are spread over revisions are one model, which is not whole.
      const named = (all: readonly string[]): string[] =>
        [...new Set(all.map((path) => path.replace(/-\d{5}(-of-\d{5})/, "$1")))].sort();
      const seen = snapshots
        .flatMap((each) => each.files.map((file) => file.path))
        .filter((path) => !isAuxiliary(path));
      assert.deepEqual(named(groups.flatMap((group) => group.files.map((file) => file.path))), named(seen));
      for (const group of groups) {
        assert.equal(registeredId(`a/b:${group.upstreamTag}`), `a/b:${group.upstreamTag}`);
        // A section of an id that the router lists by itself would not change the file that it serves.
        const others = snapshots[0]?.files.filter((file) => !group.files.some((own) => own.path === file.path)) ?? [];
        assert.ok(!others.some((file) => routerTag(file.path) === group.upstreamTag), group.upstreamTag);
      }
    }),
    { seed: 9, numRuns: 1000 },
  );
});
