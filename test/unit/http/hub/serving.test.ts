// Which files other machines may fetch, and which part of one a request asks for.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import type { CachedRepo } from "../../../../src/cache/layout/cached-repo.ts";
import { type FilePart, partOf } from "../../../../src/http/hub/range.ts";
import { isComing, servedAt } from "../../../../src/http/hub/served.ts";
import { fileHeaders, treeEntry } from "../../../../src/http/hub/shapes.ts";
import type { InventoryEntry } from "../../../../src/plan/observed.ts";

const [sha256, other, sha1] = ["a".repeat(64), "b".repeat(64), "c".repeat(40)] as const;
const [commit, older] = ["1".repeat(40), "2".repeat(40)] as const;
const file = { path: "demo-Q8_0.gguf", size: 10, modifiedAt: 0, blob: sha256, damage: null };
const repo: CachedRepo = {
  repo: "acme/demo",
  root: "/cache/models--acme--demo",
  refs: [
    { name: "main", commit },
    { name: "v1", commit: older },
  ],
  snapshots: [
    { commit, files: [file, { ...file, path: "found-Q4_0.gguf", blob: other }] },
    { commit: older, files: [file] },
  ],
  isFaulty: false,
};
const entry: InventoryEntry = {
  id: "acme/demo:Q8_0",
  repo: "acme/demo",
  tag: "Q8_0",
  revision: "main",
  commit,
  files: [{ path: file.path, blob: sha256, size: 10 }],
  addedAt: "2026-01-01T00:00:00Z",
  keep: false,
};

function paths(cached: CachedRepo, inventory: readonly InventoryEntry[], revision: string): readonly string[] | null {
  return servedAt({ repos: [cached] }, inventory, "acme/demo", revision)?.files.map(({ place }) => place) ?? null;
}

describe("what is served", () => {
  it("is what this gateway has verified, by branch, tag or commit", () => {
    const place = `/cache/models--acme--demo/snapshots/${commit}/demo-Q8_0.gguf`;
    assert.deepEqual(paths(repo, [entry], "main"), [place]);
    assert.deepEqual(paths(repo, [entry], commit), [place]);
    assert.deepEqual(paths(repo, [entry], "v1"), [place.replace(commit, older)]);
    for (const revision of ["v2", "3".repeat(40), "../main"]) assert.equal(paths(repo, [entry], revision), null);
    assert.equal(servedAt({ repos: [repo] }, [entry], "acme/else", "main"), null);
  });

  it("is nothing of other programs, and nothing damaged or of another size", () => {
    assert.equal(paths(repo, [], "main"), null);
    const withFile = (change: object): CachedRepo => ({
      ...repo,
      snapshots: [{ commit, files: [{ ...file, ...change }] }],
    });
    for (const change of [{ damage: "cut" }, { size: 9 }, { size: null }, { blob: other }])
      assert.equal(paths(withFile(change), [entry], "main"), null, JSON.stringify(change));
  });

  it("has git's id of a file in LFS, and the digests that the hub's clients look for", () => {
    const served = { path: "a.gguf", size: 10, digest: sha256, place: "" };
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize 10\n`;
    const oid = createHash("sha1").update(`blob ${pointer.length}\0${pointer}`).digest("hex");
    const lfs = { oid: sha256, size: 10, pointerSize: pointer.length };
    assert.deepEqual(treeEntry(served), { type: "file", oid, size: 10, path: "a.gguf", lfs });
    assert.deepEqual(treeEntry({ ...served, digest: sha1 }), { type: "file", oid: sha1, size: 10, path: "a.gguf" });
    assert.equal(fileHeaders(served, commit)["x-linked-etag"], `"${sha256}"`);
    assert.equal(fileHeaders({ ...served, digest: sha1 }, commit)["x-linked-etag"], undefined);
  });
});

describe("what is worth waiting for", () => {
  const model = "Acme/demo:Q8_0";
  const pull = {
    kind: "model.pull",
    key: `model/${model}`,
    model,
    revision: undefined,
    reason: "",
    message: "",
  } as const;
  const pulling = [{ action: { ...pull, disrupts: [] } }];
  const current = { generation: 2, document: { models: [{ id: model }] } };
  const pass = { desired: { generation: 2 }, running: [] };

  it("is what a pull brings or has just brought, and what a document names that no pass has seen", () => {
    assert.ok(isComing("acme/demo", pulling, pass, current));
    assert.ok(isComing("acme/demo", [], { ...pass, running: pulling }, current));
    for (const last of [null, { ...pass, desired: { generation: 1 } }])
      assert.ok(isComing("acme/demo", [], last, current));
  });

  it("is nothing else of another repository, and no model whose pull has failed or is held", () => {
    assert.ok(!isComing("acme/else", pulling, null, current));
    assert.ok(!isComing("acme/demo", [], pass, current));
  });
});

describe("the part of a file that a request asks for", () => {
  const part = (range?: string, ifRange?: string): FilePart | null =>
    partOf({ range, "if-range": ifRange }, { size: 100, etag: '"e"' });
  const whole = { from: 0, to: 100, isWhole: true };

  it("is one range, open or closed, cut at the end", () => {
    assert.deepEqual(part("bytes=0-0"), { from: 0, to: 1, isWhole: false });
    assert.deepEqual(part("bytes=10-"), { from: 10, to: 100, isWhole: false });
    assert.deepEqual(part("bytes=90-1000"), { from: 90, to: 100, isWhole: false });
    assert.deepEqual(part("bytes=-5"), { from: 95, to: 100, isWhole: false });
    assert.deepEqual(part("bytes=-500"), { from: 0, to: 100, isWhole: false });
    assert.deepEqual(part("bytes=5-9", '"e"'), { from: 5, to: 10, isWhole: false });
  });

  it("is none behind the end, and the whole file where nothing else can be meant", () => {
    assert.deepEqual([part("bytes=100-"), part("bytes=-0"), part("bytes=200-300")], [null, null, null]);
    for (const [range, ifRange] of [
      [],
      ["bytes=-"],
      ["bytes=9-5"],
      ["bytes=0-1,5-6"],
      ["lines=1-2"],
      ["bytes=0-1", '"x"'],
    ])
      assert.deepEqual(part(range, ifRange), whole, String(range));
  });
});
