// What a scan of the model cache makes of what the hub's tools leave there.
import assert from "node:assert/strict";
import { rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { createCacheScanner } from "../../../../src/cache/scan/scan.ts";
import type { CachedModel, CacheSnapshot } from "../../../../src/plan/observed.ts";
import { type CacheRepo, cacheRepo, commitOf, modelHead, sha256 } from "../../../support/cache-folder.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const commit = commitOf("main");
const repoName = "acme/demo-GGUF";

interface Cache {
  readonly cacheDir: string;
  readonly repo: CacheRepo;
  scan(): Promise<CacheSnapshot>;
  /** The models by id. */
  models(): Promise<Map<string, CachedModel>>;
}

async function cacheWith(t: TestContext, files: Readonly<Record<string, Uint8Array>>): Promise<Cache> {
  const cacheDir = await scratchFolder(t);
  const repo = cacheRepo(cacheDir, repoName);
  for (const [path, bytes] of Object.entries(files)) await repo.link(commit, path, bytes);
  await repo.main(commit);
  const scanner = createCacheScanner(cacheDir);
  const scan = async (): Promise<CacheSnapshot> => {
    const found = await scanner.scan();
    assert.ok(found.state === "known");
    return found.value;
  };
  return { cacheDir, repo, scan, models: async () => new Map((await scan()).models.map((model) => [model.id, model])) };
}

function shards(stem: string, count: number, given: readonly number[]): Record<string, Uint8Array> {
  const number = (value: number): string => String(value).padStart(5, "0");
  return Object.fromEntries(
    given.map((index) => [`${stem}-${number(index)}-of-${number(count)}.gguf`, modelHead(`${stem} ${index}`)]),
  );
}

describe("a repository's models", () => {
  it("are its quants, each with its facts", async (t) => {
    const eight = modelHead("eight", 8192, 7);
    const { repo, models } = await cacheWith(t, {
      "demo-Q8_0.gguf": eight,
      "demo-Q4_K_M.gguf": modelHead("four", 2048, 15),
      "demo.IQ4_XS.gguf": modelHead("iq", 1024, 30),
      "plain.gguf": modelHead("plain"),
    });
    const found = await models();
    assert.deepEqual(
      [...found.keys()].sort(),
      ["Q4_K_M", "Q8_0", "demo.IQ4_XS", "plain"].map((tag) => `${repoName}:${tag}`),
    );
    const model = found.get(`${repoName}:Q8_0`);
    assert.ok(model);
    const { modifiedAt, ...rest } = model;
    assert.ok(Date.now() - modifiedAt < 60_000);
    assert.deepEqual(rest, {
      id: `${repoName}:Q8_0`,
      repo: repoName,
      tag: "Q8_0",
      aliases: [`${repoName}:demo-Q8_0`],
      routerId: `${repoName}:Q8_0`,
      upstreamId: `${repoName}:Q8_0`,
      commit,
      files: [join(repo.root, "snapshots", commit, "demo-Q8_0.gguf")],
      bytes: eight.length,
      complete: true,
      damage: null,
      projector: null,
      nCtxTrain: 8192,
      digest: sha256(eight),
      blobs: [sha256(eight)],
      architecture: "llama",
      fileType: 7,
      sizeLabel: null,
      pooling: null,
    });
    assert.equal(found.get(`${repoName}:demo.IQ4_XS`)?.routerId, `${repoName}:IQ4_XS`);
    assert.equal(found.get(`${repoName}:plain`)?.routerId, null);
  });

  it("are one for all its shards, in order, in a folder too", async (t) => {
    const { models } = await cacheWith(t, {
      ...shards("big-Q8_0", 3, [2, 3, 1]),
      ...shards("Q4_K_M/big-Q4_K_M", 2, [1, 2]),
    });
    const found = await models();
    assert.deepEqual([...found.keys()].sort(), [`${repoName}:Q4_K_M`, `${repoName}:Q8_0`]);
    const eight = found.get(`${repoName}:Q8_0`);
    assert.deepEqual(
      eight?.files.map((file) => /-(\d{5})-of/.exec(file)?.[1]),
      ["00001", "00002", "00003"],
    );
    assert.deepEqual([eight?.complete, eight?.routerId, eight?.nCtxTrain], [true, `${repoName}:Q8_0`, 4096]);
    assert.deepEqual(
      [found.get(`${repoName}:Q4_K_M`)?.complete, found.get(`${repoName}:Q4_K_M`)?.routerId],
      [true, `${repoName}:Q4_K_M`],
    );
  });

  for (const given of [[1, 3], [2], [1, 2]]) {
    it(`are incomplete with shards ${given.join(" and ")} of 3`, async (t) => {
      const { models } = await cacheWith(t, shards("big-Q8_0", 3, given));
      const model = (await models()).get(`${repoName}:Q8_0`);
      assert.deepEqual([model?.complete, model?.nCtxTrain], [false, null]);
    });
  }

  it("are incomplete while a link dangles, and whole again when its blob is there", async (t) => {
    const bytes = modelHead("eight", 8192);
    const { repo, models } = await cacheWith(t, { "demo-Q8_0.gguf": bytes });
    await rm(join(repo.root, "blobs", sha256(bytes)));
    assert.deepEqual(await facts(models), [false, 0, null]);
    await writeFile(join(repo.root, "blobs", sha256(bytes)), bytes);
    assert.deepEqual(await facts(models), [true, bytes.length, 8192]);
  });

  it("have the projector that suits best, which is no model itself", async (t) => {
    const { repo, models } = await cacheWith(t, {
      "demo-Q8_0.gguf": modelHead("eight"),
      "mmproj-demo-BF16.gguf": modelHead("p1"),
      "mmproj-demo-F32.gguf": modelHead("p2"),
    });
    const projector = async (): Promise<string | null | undefined> =>
      (await models()).get(`${repoName}:Q8_0`)?.projector;
    const at = (name: string): string => join(repo.root, "snapshots", commit, name);
    assert.equal(await projector(), at("mmproj-demo-BF16.gguf"));
    await repo.link(commit, "mmproj-demo-F16.gguf", modelHead("p3"));
    assert.equal(await projector(), at("mmproj-demo-F16.gguf"));
    assert.equal((await models()).size, 1);
  });

  it("are found as plain files too, where there are no links", async (t) => {
    const { repo, models } = await cacheWith(t, {});
    const path = await repo.plain(commit, "demo-Q8_0.gguf", modelHead("eight", 512));
    const model = (await models()).get(`${repoName}:Q8_0`);
    assert.deepEqual(
      [model?.files, model?.digest, model?.complete, model?.nCtxTrain, model?.routerId],
      [[path], null, true, 512, `${repoName}:Q8_0`],
    );
  });

  it("count with content that is no GGUF, of which nothing is known", async (t) => {
    const { models } = await cacheWith(t, {
      "demo-Q8_0.gguf": Buffer.from("<html>not found</html>"),
      "demo-Q4_0.gguf": Buffer.alloc(0),
      "demo-Q5_K_M.gguf": Buffer.from("GGUF"),
    });
    const found = await models();
    assert.equal(found.size, 3);
    for (const model of found.values())
      assert.deepEqual([model.complete, model.nCtxTrain, model.architecture, model.fileType], [true, null, null, null]);
  });
});

describe("a repository with two revisions", () => {
  const old = commitOf("old");

  it("shows the one that refs/main names, and from the other what only it has", async (t) => {
    const { repo, models } = await cacheWith(t, { "demo-Q8_0.gguf": modelHead("new", 8192) });
    await repo.link(old, "demo-Q8_0.gguf", modelHead("old", 512));
    const path = await repo.link(old, "demo-Q4_0.gguf", modelHead("only old", 1024));
    const found = await models();
    assert.equal(found.size, 2);
    const eight = found.get(`${repoName}:Q8_0`);
    assert.deepEqual([eight?.commit, eight?.nCtxTrain, eight?.routerId], [commit, 8192, `${repoName}:Q8_0`]);
    const four = found.get(`${repoName}:Q4_0`);
    assert.deepEqual([four?.commit, four?.files, four?.nCtxTrain, four?.routerId], [old, [path], 1024, null]);
  });

  it("takes the whole model of the old one where the new one has only a part", async (t) => {
    const { repo, models } = await cacheWith(t, shards("big-Q8_0", 2, [1]));
    for (const [path, bytes] of Object.entries(shards("big-Q8_0", 2, [1, 2]))) await repo.link(old, path, bytes);
    const model = (await models()).get(`${repoName}:Q8_0`);
    assert.deepEqual([model?.commit, model?.complete, model?.routerId], [old, true, null]);
  });

  for (const [what, main] of [
    ["none", null],
    ["junk", "abc123"],
    ["a commit that is not there", commitOf("gone")],
    ["a path", "../../../etc"],
    ["nothing", ""],
  ] as const) {
    it(`lists the models, none of which the router sees, with ${what} in refs/main`, async (t) => {
      const { repo, models } = await cacheWith(t, { "demo-Q8_0.gguf": modelHead("eight") });
      if (main === null) await rm(join(repo.root, "refs"), { recursive: true });
      else await repo.main(main);
      const model = (await models()).get(`${repoName}:Q8_0`);
      assert.deepEqual([model?.complete, model?.routerId], [true, null]);
    });
  }

  it("reads refs/main with a line's end after it", async (t) => {
    const { repo, models } = await cacheWith(t, { "demo-Q8_0.gguf": modelHead("eight") });
    await repo.main(`${commit}\n`);
    assert.equal((await models()).get(`${repoName}:Q8_0`)?.routerId, `${repoName}:Q8_0`);
  });
});

describe("a header", () => {
  it("is read once for a content, wherever it is linked, and again when the file changed", async (t) => {
    const bytes = modelHead("eight", 8192);
    const { cacheDir, repo, models } = await cacheWith(t, { "demo-Q8_0.gguf": bytes });
    const blob = join(repo.root, "blobs", sha256(bytes));
    const time = new Date(1_700_000_000_000);
    await utimes(blob, time, time);
    assert.deepEqual(await facts(models), [true, bytes.length, 8192]);
    // Same size, same time: nothing tells that it changed, so what was read before still counts.
    await writeFile(blob, modelHead("eight", 1024));
    await utimes(blob, time, time);
    assert.deepEqual(await facts(models), [true, bytes.length, 8192]);
    const later = new Date(1_700_000_001_000);
    await utimes(blob, later, later);
    assert.deepEqual(await facts(models), [true, bytes.length, 1024]);
    await rm(join(cacheDir, `models--${repoName.replace("/", "--")}`), { recursive: true });
    assert.equal((await models()).size, 0);
  });
});

async function facts(models: Cache["models"]): Promise<unknown[]> {
  const model = (await models()).get(`${repoName}:Q8_0`);
  return [model?.complete, model?.bytes, model?.nCtxTrain];
}
