// A scan among other programs' files, of folders that cannot be read and that vanish.

import assert from "node:assert/strict";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { createCachePresence } from "../../../../src/cache/scan/presence.ts";
import { createCacheScanner } from "../../../../src/cache/scan/scan.ts";
import { surveyRepo } from "../../../../src/cache/scan/survey.ts";
import { toDesired, toTree } from "../../../../src/desired/document/document.ts";
import type { Router } from "../../../../src/engines/llama/router.ts";
import { createObserver, readPreset } from "../../../../src/observe/observe.ts";
import { noLoads } from "../../../../src/plan/load-record.ts";
import {
  type CacheSnapshot,
  type InventoryEntry,
  type Observed,
  restingSpeech,
} from "../../../../src/plan/observed.ts";
import { cacheRepo, commitOf, modelHead, sha256 } from "../../../support/cache-folder.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const commit = commitOf("main");

async function cacheOf(
  t: TestContext,
  ...repos: readonly string[]
): Promise<{ cacheDir: string; scan(): Promise<CacheSnapshot> }> {
  const cacheDir = join(await scratchFolder(t), "hub");
  await mkdir(cacheDir);
  for (const name of repos) {
    const repo = cacheRepo(cacheDir, name);
    await repo.link(commit, "demo-Q8_0.gguf", modelHead(name));
    await repo.main(commit);
  }
  const scanner = createCacheScanner(cacheDir);
  return {
    cacheDir,
    scan: async () => {
      const found = await scanner.scan();
      assert.ok(found.state === "known");
      return found.value;
    },
  };
}

function ids({ models }: CacheSnapshot): string[] {
  return models.map(({ id }) => id);
}

describe("a cache that others use too", () => {
  it("shows models alone: no data sets, locks, partials, stray files", async (t) => {
    const { cacheDir, scan } = await cacheOf(t, "acme/demo", "acme/other");
    const before = await scan();
    const snapshot = join(cacheDir, "models--acme--demo", "snapshots", commit);
    const blobs = join(cacheDir, "models--acme--demo", "blobs");
    const strays = [
      join(cacheDir, "datasets--acme--data", "snapshots", commit, "data-Q8_0.gguf"),
      join(cacheDir, "spaces--acme--space", "snapshots", commit, "space-Q8_0.gguf"),
      join(cacheDir, ".locks", "models--acme--demo", "x.lock"),
      join(cacheDir, "models--acme", "snapshots", commit, "x-Q8_0.gguf"),
      join(cacheDir, "version.txt"),
      join(cacheDir, "models--acme--plain-file"),
      join(cacheDir, "models--acme--demo", "snapshots", ".DS_Store"),
      join(cacheDir, "models--acme--demo", ".0f0f.gw.incomplete"),
      join(blobs, `${sha256(Buffer.from("x"))}.incomplete`),
      join(blobs, `${sha256(Buffer.from("x"))}.gw.incomplete`),
      ...[
        "README.md",
        "demo-Q4_0.gguf.downloadInProgress",
        "demo-Q4_0.gguf.part",
        "demo-Q4_0.gguf.incomplete",
        "demo-Q4_0.bin",
      ].map((name) => join(snapshot, name)),
    ];
    for (const path of strays) {
      await mkdir(join(path, ".."), { recursive: true });
      await writeFile(path, "x");
    }
    await mkdir(join(cacheDir, "models--acme--empty"));
    assert.deepEqual((await scan()).models, before.models);
    assert.deepEqual(ids(before), ["acme/demo:Q8_0", "acme/other:Q8_0"]);
  });

  it("takes a folder that is called like a model for none", async (t) => {
    const { cacheDir, scan } = await cacheOf(t, "acme/demo");
    const snapshot = join(cacheDir, "models--acme--demo", "snapshots", commit);
    await mkdir(join(cacheDir, "somewhere"));
    await symlink(join(cacheDir, "somewhere"), join(snapshot, "demo-Q4_0.gguf"));
    await mkdir(join(snapshot, "demo-Q5_K_M.gguf"));
    const found = await scan();
    assert.deepEqual(
      found.models.map(({ id, complete }) => [id, complete]),
      [
        ["acme/demo:Q4_0", false],
        ["acme/demo:Q8_0", true],
      ],
    );
  });

  it("has a signature that changes with what could be served, and with nothing else", async (t) => {
    const { cacheDir, scan } = await cacheOf(t, "acme/demo");
    const first = (await scan()).signature;
    await writeFile(join(cacheDir, "models--acme--demo", "blobs", "x.incomplete"), "");
    assert.equal((await scan()).signature, first);
    const repo = cacheRepo(cacheDir, "acme/demo");
    const path = await repo.link(commit, "demo-Q4_0.gguf", modelHead("four"));
    const second = (await scan()).signature;
    assert.notEqual(second, first);
    await rm(path);
    assert.equal((await scan()).signature, first);
    await repo.main(commitOf("elsewhere"));
    assert.notEqual((await scan()).signature, first);
  });

  it("says which repository cannot be read, and shows the others", async (t) => {
    const { cacheDir, scan } = await cacheOf(t, "acme/demo", "acme/other");
    const before = (await scan()).signature;
    const snapshots = join(cacheDir, "models--acme--demo", "snapshots");
    await rename(snapshots, `${snapshots}.away`);
    await symlink("snapshots", snapshots);
    const broken = await scan();
    assert.deepEqual([ids(broken), broken.unreadable], [["acme/other:Q8_0"], ["acme/demo"]]);
    assert.deepEqual([broken.faults, broken.whole], [[`${snapshots} (ELOOP)`], ["models--acme--other"]]);
    await rm(snapshots);
    await rename(`${snapshots}.away`, snapshots);
    const mended = await scan();
    assert.deepEqual(
      [ids(mended), mended.unreadable, mended.signature],
      [["acme/demo:Q8_0", "acme/other:Q8_0"], [], before],
    );
  });

  it("keeps a repository with a looping link from the router, and serves its models by sections of ours", async (t) => {
    const { cacheDir, scan } = await cacheOf(t, "acme/demo", "acme/other");
    const [before] = (await scan()).models;
    const root = join(cacheDir, "models--acme--demo");
    const loops = [join(root, "refs", "main"), join(root, "snapshots", commit, "a", "b", "loop.txt")];
    for (const path of loops) {
      await rm(path, { force: true });
      await mkdir(join(path, ".."), { recursive: true });
      await symlink(path, path);
    }
    const found = await scan();
    assert.deepEqual([found.faults, found.whole], [loops.map((path) => `${path} (ELOOP)`), ["models--acme--other"]]);
    assert.deepEqual(found.models[0], { ...before, routerId: null });
  });

  // As of Node 26 its own recursive listing follows links, and two that lead up keep it busy until memory is full.
  it("is read to its end where links in a revision lead to folders above it", async (t) => {
    const { cacheDir, scan } = await cacheOf(t, "acme/demo");
    const before = await scan();
    const snapshot = join(cacheDir, "models--acme--demo", "snapshots", commit);
    for (const name of ["up", "up-too"]) await symlink(join("..", "..", ".."), join(snapshot, name));
    const found = await scan();
    assert.deepEqual([found.models, found.faults], [before.models, []]);
    const survey = await surveyRepo(cacheDir, "acme/demo");
    assert.deepEqual(survey?.snapshots[0]?.files.map(({ path }) => path).sort(), ["demo-Q8_0.gguf", "up", "up-too"]);
  });

  it("can be tidied by another program, files and whole revisions, while it is read", async (t) => {
    const { cacheDir, scan } = await cacheOf(t, "acme/demo", "acme/other");
    const repo = cacheRepo(cacheDir, "acme/demo");
    const paths: string[] = [];
    for (let index = 0; index < 60; index++) {
      paths.push(await repo.link(commit, `extra-${index}.gguf`, modelHead("extra")));
      await repo.link(commitOf(String(index)), "extra/model-Q8_0.gguf", modelHead("extra"));
      paths.push(join(repo.root, "snapshots", commitOf(String(index))));
    }
    let tidying = true;
    const other = (async () => {
      for (const path of paths) await rm(path, { recursive: true });
    })().finally(() => {
      tidying = false;
    });
    while (tidying) {
      const { models, unreadable } = await scan();
      assert.deepEqual(unreadable, []);
      assert.ok(models.some(({ id }) => id === "acme/demo:Q8_0"));
    }
    await other;
    assert.deepEqual(ids(await scan()), ["acme/demo:Q8_0", "acme/other:Q8_0"]);
  });
});

describe("the cache folder itself", () => {
  it("may not be there yet", async (t) => {
    const scratch = await scratchFolder(t);
    const found = await createCacheScanner(join(scratch, "none")).scan();
    assert.deepEqual(found, {
      state: "known",
      value: {
        dir: join(scratch, "none"),
        models: [],
        repos: [],
        signature: "empty",
        unreadable: [],
        faults: [],
        whole: [],
      },
    });
  });

  it("is unknown once it has gone, or is no folder", async (t) => {
    const { cacheDir } = await cacheOf(t, "acme/demo");
    const scanner = createCacheScanner(cacheDir);
    await scanner.scan();
    await rename(cacheDir, `${cacheDir}.away`);
    const gone = await scanner.scan();
    assert.ok(gone.state === "unknown" && gone.why.includes("ENOENT"), JSON.stringify(gone));
    await writeFile(cacheDir, "");
    const file = await createCacheScanner(cacheDir).scan();
    assert.ok(file.state === "unknown" && file.why.includes("ENOTDIR"), JSON.stringify(file));
  });

  it("is unknown at the first look too, where this gateway once put models there", async (t) => {
    const root = await scratchFolder(t);
    const observe = (inventory: readonly InventoryEntry[]): Promise<Observed> =>
      observer(join(root, "none"), join(root, "preset.ini"), inventory).observe();
    const entry = {
      id: "acme/a:Q8_0",
      repo: "acme/a",
      tag: "Q8_0",
      revision: "main",
      commit,
      files: [],
      addedAt: "",
      keep: false,
    };
    assert.equal((await observe([])).cache.state, "known");
    const { cache, freeBytes } = await observe([entry]);
    assert.ok(cache.state === "unknown" && /is gone/.test(cache.why));
    // Of the nearest folder that is there.
    assert.ok(freeBytes.state === "known" && freeBytes.value > 0);
  });
});

describe("the preset file", () => {
  it("is empty where there is none, and unknown where it cannot be read", async (t) => {
    const root = await scratchFolder(t);
    const none = await readPreset(join(root, "none.ini"));
    assert.ok(none.state === "known" && none.value.text === "");
    const folder = await readPreset(root);
    assert.ok(folder.state === "unknown" && folder.why.includes("EISDIR"));
  });
});

function observer(
  cacheDir: string,
  presetPath: string,
  inventory: readonly InventoryEntry[],
): ReturnType<typeof createObserver> {
  const router = { refresh: async () => undefined, snapshot: () => ({ phase: "stopped" }) } as unknown as Router;
  const engine = {
    state: () => ({ binary: "missing" as const, build: "", knownOptions: null }),
    look: async () => false,
  };
  return createObserver({
    workers: null,
    scanner: createCacheScanner(
      cacheDir,
      createCachePresence(cacheDir, () => ({ count: inventory.length, place: null })),
    ),
    cacheDir,
    presetPath,
    configPath: join(cacheDir, "gateway.yaml"),
    desired: () => toDesired(toTree({ version: 1 })),
    router,
    inventory: () => inventory,
    loads: () => noLoads,
    engine,
    speech: () => Promise.resolve({ transcription: restingSpeech, synthesis: restingSpeech }),
    onNewEngine: () => undefined,
  });
}
