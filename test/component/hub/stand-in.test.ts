// The loopback hub, checked with the hub's own JavaScript client: what holds for one must hold for the other.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  downloadFile,
  downloadFileToCacheDir,
  fileDownloadInfo,
  HubApiError,
  listFiles,
  listModels,
} from "@huggingface/hub";
import { startLoopbackHub } from "../../support/loopback-hub.ts";

const weights = Buffer.alloc(100_000, "weights ");

describe("the loopback hub, seen by @huggingface/hub", () => {
  it("searches, over several pages", async (t) => {
    const hub = await startLoopbackHub(t, { pageSize: 2 });
    for (const n of [1, 2, 3, 4, 5])
      hub.addRepo(`acme/demo${n}-GGUF`, { files: { "a.gguf": weights }, downloads: n, likes: 9 });
    hub.addRepo("acme/demo-safetensors", { files: { "model.safetensors": weights } });
    const found: string[] = [];
    for await (const model of listModels({ hubUrl: hub.endpoint, search: { query: "demo", tags: ["gguf"] } })) {
      found.push(`${model.name} ${model.downloads} ${model.likes}`);
    }
    assert.deepEqual(
      found,
      [5, 4, 3, 2, 1].map((n) => `acme/demo${n}-GGUF ${n} 9`),
    );
  });

  it("lists files over several pages, with sizes and digests", async (t) => {
    const hub = await startLoopbackHub(t, { pageSize: 2 });
    hub.addRepo("acme/demo", {
      files: { "README.md": Buffer.from("hi"), "a.gguf": weights, "sub/dir/b.gguf": weights },
    });
    const files: string[] = [];
    for await (const entry of listFiles({ repo: "acme/demo", hubUrl: hub.endpoint, recursive: true })) {
      files.push(`${entry.type} ${entry.path} ${entry.size} ${entry.lfs?.oid.length ?? 0}`);
    }
    const expected = [
      "file README.md 2 0",
      "file a.gguf 100000 64",
      "directory sub 0 0",
      "directory sub/dir 0 0",
      "file sub/dir/b.gguf 100000 64",
    ];
    assert.deepEqual(files.sort(), expected.sort());
  });

  it("gives files through its storage, whole and in part, into the cache too", async (t) => {
    const hub = await startLoopbackHub(t);
    const commit = hub.addRepo("acme/demo", { files: { "README.md": Buffer.from("hi"), "a.gguf": weights } });
    const info = await fileDownloadInfo({ repo: "acme/demo", path: "a.gguf", hubUrl: hub.endpoint });
    assert.equal(info?.size, weights.length);
    const blob = await downloadFile({ repo: "acme/demo", path: "a.gguf", hubUrl: hub.endpoint });
    assert.deepEqual(Buffer.from((await blob?.arrayBuffer()) ?? new ArrayBuffer(0)), weights);
    const part = await blob?.slice(10, 20).arrayBuffer();
    assert.deepEqual(Buffer.from(part ?? new ArrayBuffer(0)), weights.subarray(10, 20));
    assert.equal(
      await (await downloadFile({ repo: "acme/demo", path: "README.md", hubUrl: hub.endpoint }))?.text(),
      "hi",
    );

    const cacheDir = await mkdtemp(join(tmpdir(), "hub-"));
    t.after(() => rm(cacheDir, { recursive: true }));
    t.mock.method(console, "debug", () => undefined);
    const path = await downloadFileToCacheDir({
      repo: "acme/demo",
      path: "a.gguf",
      revision: commit,
      cacheDir,
      hubUrl: hub.endpoint,
    });
    assert.deepEqual(await readFile(path), weights);
    assert.equal(
      hub.requests.some((request) => request.origin === "storage" && request.authorized),
      false,
    );
  });

  it("refuses as the hub does", async (t) => {
    const token = "hf_abcdefghijklmnopqrstuvwxyz0123456789";
    const hub = await startLoopbackHub(t, { tokens: [token] });
    hub.addRepo("acme/gated", { files: { "a.gguf": weights }, gated: true });
    const ask = (repo: string, accessToken?: string) => {
      return fileDownloadInfo({ repo, path: "a.gguf", hubUrl: hub.endpoint, ...(accessToken ? { accessToken } : {}) });
    };
    const status = (expected: number) => (error: unknown) =>
      error instanceof HubApiError && error.statusCode === expected;
    await assert.rejects(ask("acme/gated"), status(401));
    await assert.rejects(ask("acme/gated", "hf_wrong"), status(403));
    assert.equal((await ask("acme/gated", token))?.size, weights.length);
    await assert.rejects(ask("acme/none", token), status(404));
    assert.equal(
      await fileDownloadInfo({ repo: "acme/gated", path: "none.gguf", hubUrl: hub.endpoint, accessToken: token }),
      null,
    );
  });
});
