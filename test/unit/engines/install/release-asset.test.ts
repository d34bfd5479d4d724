// Which archive of a releases listing is taken, for the names that the projects have used.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseAsset } from "../../../../src/engines/install/release-asset.ts";

const digest = `sha256:${"ab".repeat(32)}`;

function release(tag: string, names: readonly string[], withDigest: string | null = digest): object {
  const assets = names.map((name) => ({
    name,
    browser_download_url: `http://host/${name}`,
    size: 7,
    digest: withDigest,
  }));
  return { tag_name: tag, assets };
}

function chosen(listing: unknown, platform: string, arch: string): string {
  const asset = chooseAsset(listing, platform, arch);
  return typeof asset === "string" ? `none: ${asset}` : asset.name;
}

const present = release("b9219", [
  "cudart-llama-bin-win-cuda-12.4-x64.zip",
  "llama-b9219-bin-310p-openEuler-aarch64.tar.gz",
  "llama-b9219-bin-android-arm64.tar.gz",
  "llama-b9219-bin-macos-arm64-kleidiai.tar.gz",
  "llama-b9219-bin-macos-arm64.tar.gz",
  "llama-b9219-bin-macos-x64.tar.gz",
  "llama-b9219-bin-ubuntu-arm64.tar.gz",
  "llama-b9219-bin-ubuntu-cuda-12.4-x64.tar.gz",
  "llama-b9219-bin-ubuntu-rocm-7.2-x64.tar.gz",
  "llama-b9219-bin-ubuntu-s390x.tar.gz",
  "llama-b9219-bin-ubuntu-vulkan-x64.tar.gz",
  "llama-b9219-bin-ubuntu-x64.tar.gz",
  "llama-b9219-bin-win-cpu-arm64.zip",
  "llama-b9219-bin-win-cpu-x64.zip",
  "llama-b9219-bin-win-cuda-12.4-x64.zip",
  "llama-b9219-bin-win-opencl-adreno-arm64.zip",
  "llama-b9219-bin-win-vulkan-x64.zip",
  "llama-b9219-xcframework.zip",
]);

test("the plain archive is taken on each platform", () => {
  assert.equal(chosen([present], "linux", "x64"), "llama-b9219-bin-ubuntu-x64.tar.gz");
  assert.equal(chosen([present], "linux", "arm64"), "llama-b9219-bin-ubuntu-arm64.tar.gz");
  assert.equal(chosen([present], "darwin", "arm64"), "llama-b9219-bin-macos-arm64.tar.gz");
  assert.equal(chosen([present], "darwin", "x64"), "llama-b9219-bin-macos-x64.tar.gz");
  assert.equal(chosen([present], "win32", "x64"), "llama-b9219-bin-win-cpu-x64.zip");
  assert.equal(chosen([present], "win32", "arm64"), "llama-b9219-bin-win-cpu-arm64.zip");
});

test("older and other names are understood", () => {
  const old = release("b4000", [
    "llama-b4000-bin-ubuntu-x64.zip",
    "llama-b4000-bin-win-avx2-x64.zip",
    "llama-b4000-bin-win-avx512-x64.zip",
    "llama-b4000-bin-win-noavx-x64.zip",
  ]);
  assert.equal(chosen(old, "linux", "x64"), "llama-b4000-bin-ubuntu-x64.zip");
  assert.equal(chosen(old, "win32", "x64"), "llama-b4000-bin-win-avx2-x64.zip");
  const whisper = release("v1.9.5", [
    "whisper-bin-Win32.zip",
    "whisper-bin-ubuntu-x64.tar.gz",
    "whisper-bin-x64.zip",
    "whisper-blas-bin-x64.zip",
    "whisper-cublas-12.4.0-bin-x64.zip",
    "whisper-v1.9.5-xcframework.zip",
  ]);
  assert.equal(chosen(whisper, "win32", "x64"), "whisper-bin-x64.zip");
  assert.equal(chosen(whisper, "linux", "x64"), "whisper-bin-ubuntu-x64.tar.gz");
  assert.match(chosen(whisper, "darwin", "arm64"), /^none: no release has an archive for darwin arm64$/);
});

test("a release whose archives are not there yet is passed over, a draft too", () => {
  const draft = { ...release("b3", ["llama-b3-bin-ubuntu-x64.tar.gz"]), draft: true };
  const listing = [
    draft,
    release("b2", ["llama-b2-xcframework.zip"]),
    release("b1", ["llama-b1-bin-ubuntu-x64.tar.gz"]),
  ];
  assert.equal(chosen(listing, "linux", "x64"), "llama-b1-bin-ubuntu-x64.tar.gz");
});

test("an archive without a digest is not taken, and the reason says so", () => {
  const listing = [release("b2", ["llama-b2-bin-ubuntu-x64.tar.gz"], null)];
  assert.match(chosen(listing, "linux", "x64"), /no SHA-256 digest for llama-b2-bin-ubuntu-x64/);
  const older = release("b1", ["llama-b1-bin-ubuntu-x64.tar.gz"]);
  assert.equal(chosen([...listing, older], "linux", "x64"), "llama-b1-bin-ubuntu-x64.tar.gz");
});

test("a listing that is something else gives a reason, not a crash", () => {
  for (const listing of [null, 7, "text", [], {}, { message: "rate limit" }, [null, { tag_name: 1 }]]) {
    assert.match(chosen(listing, "linux", "x64"), /^none: /);
  }
});
