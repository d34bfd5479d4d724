// Paths of the cache layout, and what is refused to become one.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  blobPath,
  isSafePath,
  linkTarget,
  partialPath,
  refPath,
  repoFolder,
  repoOfFolder,
  snapshotPath,
} from "../../../../src/cache/layout/layout.ts";
import { GatewayError } from "../../../../src/core/errors.ts";

const digest = "ab".repeat(32);
const commit = "cd".repeat(20);

describe("hub cache layout", () => {
  it("is the one of the hub's own tools", () => {
    assert.equal(repoFolder("/c", "acme/Demo-GGUF"), "/c/models--acme--Demo-GGUF");
    assert.equal(repoOfFolder("models--acme--Demo-GGUF"), "acme/Demo-GGUF");
    assert.equal(repoOfFolder("datasets--acme--demo"), null);
    assert.equal(blobPath("/c", "a/b", digest), `/c/models--a--b/blobs/${digest}`);
    assert.equal(partialPath("/c", "a/b", digest), `/c/models--a--b/blobs/${digest}.gw.incomplete`);
    assert.equal(snapshotPath("/c", "a/b", commit, "x/y.gguf"), `/c/models--a--b/snapshots/${commit}/x/y.gguf`);
    assert.equal(refPath("/c", "a/b", "refs/pr/1"), "/c/models--a--b/refs/refs/pr/1");
    assert.equal(linkTarget("y.gguf", digest), `../../blobs/${digest}`);
    assert.equal(linkTarget("x/z/y.gguf", digest), `../../../../blobs/${digest}`);
  });

  it("refuses paths that leave their folder", () => {
    for (const path of [
      "",
      "..",
      "../x",
      "a/../b",
      "/etc/x",
      "a//b",
      "./a",
      "a/",
      "a\\..\\b",
      "C:/x",
      "a\0b",
      "a\nb",
      `a/${"é".repeat(128)}`,
    ]) {
      assert.equal(isSafePath(path), false, JSON.stringify(path));
      assert.throws(() => snapshotPath("/c", "a/b", commit, path), GatewayError);
      assert.throws(() => refPath("/c", "a/b", path), GatewayError);
    }
    assert.equal(isSafePath("Q8_0/foo..bar-Q8_0.gguf"), true);
  });

  it("refuses names that are no repository, commit or digest", () => {
    assert.throws(() => repoFolder("/c", "../b"), GatewayError);
    assert.throws(() => repoFolder("/c", "a"), GatewayError);
    assert.throws(() => blobPath("/c", "a/b", "../../x"), GatewayError);
    assert.throws(() => snapshotPath("/c", "a/b", "main", "x"), GatewayError);
  });
});
