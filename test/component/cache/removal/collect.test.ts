// What of a model cache is collected, on real files: superseded revisions, orphans and abandoned partials of ours; all else stays.
import assert from "node:assert/strict";
import { chmod, link, mkdir, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { type Inventory, openInventory } from "../../../../src/cache/inventory/inventory.ts";
import { createRepoTurns, type RepoTurns } from "../../../../src/cache/removal/repo-turns.ts";
import type { Collected } from "../../../../src/cache/report/garbage.ts";
import { createCacheScanner } from "../../../../src/cache/scan/scan.ts";
import { type Desired, toDesired, toTree } from "../../../../src/desired/document/document.ts";
import { type Collector, createCollector } from "../../../../src/execute/cache-gc.ts";
import type { Action } from "../../../../src/plan/actions.ts";
import type { CachedModel, RouterSnapshot } from "../../../../src/plan/observed.ts";
import { entriesBelow } from "../../../../src/state/folder.ts";
import { type CacheRepo, cacheRepo, commitOf, modelHead, sha256 } from "../../../support/cache-folder.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const repoName = "acme/demo-GGUF";
const eight = `${repoName}:Q8_0`;
const [first, second] = [commitOf("first"), commitOf("second")];
const before = modelHead("eight, as it was");
const now = modelHead("eight");
const hourMs = 3_600_000;

interface Cache {
  readonly cacheDir: string;
  readonly repo: CacheRepo;
  readonly inventory: Inventory;
  readonly turns: RepoTurns;
  desired: Desired;
  router: Pick<RouterSnapshot, "phase" | "models">;
  clock: number;
  readonly collector: Collector;
  models(): Promise<readonly CachedModel[]>;
  /** As if this gateway had pulled it. */
  ours(commit: string, path: string, bytes: Uint8Array, id?: string, keep?: boolean): Promise<string>;
  collect(): Promise<Collected>;
  /** Paths of what would go, and reasons of what is skipped. */
  preview(): Promise<{ goes: string[]; skipped: string[] }>;
  world(): Promise<string[]>;
}

async function cache(t: TestContext): Promise<Cache> {
  const root = await scratchFolder(t);
  const cacheDir = join(root, "hub");
  const repo = cacheRepo(cacheDir, repoName);
  await repo.main(second);
  const inventory = await openInventory(root, () => undefined);
  const turns = createRepoTurns();
  const scanner = createCacheScanner(cacheDir);
  const models = async (): Promise<readonly CachedModel[]> => {
    const found = await scanner.scan();
    assert.ok(found.state === "known");
    return found.value.models;
  };
  const self: Cache = {
    cacheDir,
    repo,
    inventory,
    turns,
    desired: toDesired(toTree({ version: 1 })),
    router: { phase: "stopped", models: { state: "unknown", why: "" } },
    clock: Date.now(),
    get collector() {
      const common = { cacheDir, inventory, turns, desired: () => self.desired, now: () => self.clock };
      const voicesDir = join(cacheDir, "no-voices");
      const running = () => ({ transcription: null, synthesis: null });
      const router = (): Cache["router"] => self.router;
      return createCollector({ ...common, gateway: "mine", voicesDir, running, router, cachedModels: models });
    },
    models,
    ours: async (commit, path, bytes, id = eight, keep = false) => {
      const place = await repo.link(commit, path, bytes);
      const files = [{ path, blob: sha256(bytes), size: bytes.length }];
      const tag = id.slice(id.indexOf(":") + 1);
      await inventory.put({ id, repo: repoName, tag, revision: "main", commit, files, addedAt: "", keep });
      return place;
    },
    collect: async () => {
      const action: Extract<Action, { kind: "cache.gc" }> = {
        kind: "cache.gc",
        key: "cache",
        reason: "",
        message: "",
        disrupts: [],
      };
      const run = { signal: new AbortController().signal, report: () => undefined };
      return (await self.collector.handler(action, run)).collected;
    },
    preview: async () => {
      const { repos, skipped } = (await self.collector.look()).garbage;
      const items = repos.flatMap((garbage) => garbage.items);
      return {
        goes: items.map(({ path, reason }) => `${reason} ${path.slice("models--acme--demo-GGUF/".length)}`),
        skipped: skipped.map(({ reason }) => reason),
      };
    },
    world: async () => {
      const entries = await entriesBelow(cacheDir);
      const files = entries.filter((entry) => !entry.isDirectory());
      return files.map((entry) => relative(repo.root, join(entry.parentPath, entry.name))).sort();
    },
  };
  return self;
}

/** The model was pulled at one commit and then, the repository having moved on, anew at another. */
async function repulled(t: TestContext): Promise<Cache> {
  const made = await cache(t);
  await made.ours(first, "demo-Q8_0.gguf", before);
  await made.ours(second, "demo-Q8_0.gguf", now);
  return made;
}

async function age(path: string, ms: number): Promise<void> {
  const then = new Date(Date.now() - ms);
  await utimes(path, then, then);
}

const stale = [`StaleRevision snapshots/${first}`];
const current = [`blobs/${sha256(now)}`, "refs/main", `snapshots/${second}/demo-Q8_0.gguf`].sort();

describe("collecting", () => {
  it("takes a revision of ours that was superseded, with its blob, and tells what it freed", async (t) => {
    const { preview, collect, world, inventory } = await repulled(t);
    const all = await world();
    assert.deepEqual(await preview(), { goes: stale, skipped: [] });
    assert.deepEqual(await world(), all, "a look deletes nothing");
    const { items, skipped, deletedFiles, freedBytes } = await collect();
    assert.deepEqual([deletedFiles, freedBytes, skipped], [2, before.length, []]);
    assert.deepEqual(
      items.map(({ kind, files, bytes }) => [kind, files, bytes]),
      [["revision", 2, before.length]],
    );
    assert.deepEqual(await world(), current);
    assert.equal(inventory.get(eight)?.former, undefined);
    assert.deepEqual(await collect(), { items: [], skipped: [], deletedFiles: 0, freedBytes: 0 });
  });

  it("leaves a revision that a ref or the inventory names, and files of another program in one that nothing names", async (t) => {
    const named = await repulled(t);
    await mkdir(join(named.repo.root, "refs", "pr"), { recursive: true });
    await writeFile(join(named.repo.root, "refs", "pr", "1"), first);
    assert.deepEqual(await named.preview(), { goes: [], skipped: [] });

    // Another program counts on the revision as it is, down to our file in it.
    const shared = await repulled(t);
    await shared.repo.link(first, "config.json", modelHead("another's"));
    const all = await shared.world();
    assert.deepEqual(await shared.preview(), { goes: [], skipped: [] });
    assert.equal((await shared.collect()).deletedFiles, 0);
    assert.deepEqual(await shared.world(), all);
    // As is one that it made of our blob, and that no pull of ours linked.
    const theirs = await repulled(t);
    await theirs.repo.link(commitOf("theirs"), "demo-Q8_0.gguf", now);
    assert.deepEqual(await theirs.preview(), { goes: stale, skipped: [] });
    await theirs.collect();
    assert.deepEqual(await theirs.world(), [...current, `snapshots/${commitOf("theirs")}/demo-Q8_0.gguf`].sort());
    const nothingOurs = await cache(t);
    await nothingOurs.repo.link(first, "demo-Q8_0.gguf", before);
    await writeFile(join(nothingOurs.repo.root, "blobs", "a".repeat(64)), "another's orphan");
    assert.deepEqual(await nothingOurs.preview(), { goes: [], skipped: [] });
  });

  it("takes ours where another program has moved the branch to a file of its own, once nobody wants it", async (t) => {
    const made = await cache(t);
    await made.ours(first, "demo-Q8_0.gguf", before);
    await made.repo.link(second, "demo-Q8_0.gguf", now);
    made.desired = toDesired(toTree({ version: 1, models: [eight] }));
    assert.deepEqual(await made.preview(), { goes: [], skipped: [] });
    made.desired = toDesired(toTree({ version: 1 }));
    await made.inventory.noteKept(new Set([eight]), new Set());
    assert.deepEqual(await made.preview(), { goes: [], skipped: [] });
    await made.inventory.noteKept(new Set(), new Set([eight]));
    assert.equal((await made.collect()).freedBytes, before.length);
    assert.deepEqual([await made.world(), made.inventory.entries()], [current, []]);
  });

  it("leaves what is listed as a model from an old revision: that is for rm and prune", async (t) => {
    const made = await cache(t);
    await made.ours(first, "demo-old-Q8_0.gguf", before);
    await made.ours(second, "demo-Q8_0.gguf", now);
    assert.equal((await made.models()).length, 2);
    assert.deepEqual(await made.preview(), { goes: [], skipped: [] });
  });

  it("takes orphans of ours, but not those that a pull would link again, nor those of a removal", async (t) => {
    const made = await cache(t);
    const place = await made.ours(second, "demo-Q8_0.gguf", now);
    await rm(place);
    const orphan = [`OrphanBlob blobs/${sha256(now)}`];
    assert.deepEqual((await made.preview()).goes, orphan);
    made.desired = toDesired(toTree({ version: 1, models: [eight.toLowerCase()] }));
    assert.deepEqual((await made.preview()).goes, []);
    made.desired = toDesired(toTree({ version: 1 }));
    await made.inventory.noteKept(new Set([eight]), new Set());
    assert.deepEqual((await made.preview()).goes, []);
    await made.inventory.noteKept(new Set(), new Set([eight]));
    const { freedBytes } = await made.collect();
    assert.equal(freedBytes, now.length);
    assert.equal(made.inventory.get(eight), undefined);
    assert.deepEqual(await made.world(), ["refs/main"]);
  });

  it("takes unfinished downloads that are old and that nobody wants", async (t) => {
    const made = await cache(t);
    const blobs = join(made.repo.root, "blobs");
    await mkdir(blobs, { recursive: true });
    const [old, fresh, others] = [
      `${"a".repeat(64)}.gw.incomplete`,
      `${"b".repeat(64)}.gw.incomplete`,
      `${"c".repeat(64)}.incomplete`,
    ];
    for (const name of [old, fresh, others]) await writeFile(join(blobs, name), "x".repeat(5000));
    await age(join(blobs, old), 2 * hourMs);
    await age(join(blobs, others), 48 * hourMs);
    assert.deepEqual(await made.preview(), { goes: [`AbandonedPartial blobs/${old}`], skipped: [] });
    const { freedBytes, deletedFiles } = await made.collect();
    assert.deepEqual([deletedFiles, freedBytes], [1, 5000]);
    assert.deepEqual(await made.world(), [`blobs/${fresh}`, `blobs/${others}`, "refs/main"].sort());
  });

  it("leaves a repository alone where a linked folder may show its blobs, be it one revision or all of them on another disk", async (t) => {
    const made = await cache(t);
    await rm(await made.ours(second, "demo-Q8_0.gguf", now));
    assert.deepEqual((await made.preview()).goes, [`OrphanBlob blobs/${sha256(now)}`]);
    const elsewhere = await scratchFolder(t);
    await symlink(join(made.repo.root, "blobs", sha256(now)), join(elsewhere, "renamed.gguf"));
    await symlink(elsewhere, join(made.repo.root, "snapshots", first));
    assert.deepEqual(await made.preview(), { goes: [], skipped: ["FolderLink"] });

    const moved = await repulled(t);
    assert.deepEqual((await moved.preview()).goes, stale);
    const disk = await scratchFolder(t);
    await rename(join(moved.repo.root, "snapshots"), join(disk, "snapshots"));
    await symlink(join(disk, "snapshots"), join(moved.repo.root, "snapshots"));
    // Its links are relative, and lead from there as well.
    await symlink(join(moved.repo.root, "blobs"), join(disk, "blobs"));
    assert.deepEqual(await moved.preview(), { goes: [], skipped: ["FolderLink"] });
  });

  it("leaves a repository alone that is loaded from, pulled, locked by another program, unreadable or unknown", async (t) => {
    const made = await repulled(t);
    const all = await made.world();
    const skipped = async (): Promise<string[]> => {
      const result = await made.collect();
      assert.deepEqual([result.items, result.deletedFiles], [[], 0]);
      assert.deepEqual(await made.world(), all);
      return result.skipped.map(({ reason }) => reason);
    };
    const stopped = made.router;
    const loaded = { id: `${repoName}:Q8_0`, value: "sleeping", failed: false, args: [], nCtx: null };
    made.router = { phase: "ready", models: { state: "known", value: [loaded] } };
    assert.deepEqual(await skipped(), ["ModelLoaded"]);
    made.router = { phase: "ready", models: { state: "unknown", why: "it is silent" } };
    assert.deepEqual(await skipped(), ["Unknown"]);
    made.router = stopped;

    const release = await made.turns.take(repoName.toUpperCase(), new AbortController().signal);
    assert.deepEqual(await skipped(), ["BeingPulled"]);
    release();

    const locks = join(made.cacheDir, ".locks", "models--acme--demo-GGUF");
    await mkdir(locks, { recursive: true });
    await writeFile(join(locks, `${sha256(now)}.lock`), "");
    all.push(relative(made.repo.root, join(locks, `${sha256(now)}.lock`)));
    all.sort();
    assert.deepEqual(await skipped(), ["AnotherProgram"]);
    await age(join(locks, `${sha256(now)}.lock`), 2 * hourMs);
    assert.deepEqual((await made.preview()).goes, stale);

    if (process.getuid?.() !== 0) {
      await chmod(join(made.repo.root, "snapshots"), 0o000);
      cleanUp(t, () => chmod(join(made.repo.root, "snapshots"), 0o755));
      assert.deepEqual((await made.preview()).skipped, ["Unreadable"]);
    }
  });

  it("keeps a blob that got a new link since it was chosen, and one with names elsewhere frees nothing", async (t) => {
    const made = await repulled(t);
    const blob = join(made.repo.root, "blobs", sha256(before));
    await link(blob, join(made.cacheDir, "elsewhere"));
    const { repos } = (await made.collector.look()).garbage;
    assert.deepEqual(repos[0]?.blobs, [sha256(before)]);
    await symlink(`../../blobs/${sha256(before)}`, join(made.repo.root, "snapshots", second, "again.gguf"));
    assert.deepEqual((await made.collect()).freedBytes, 0);
    assert.ok((await made.world()).includes(`blobs/${sha256(before)}`));
  });

  it("has the repository to itself: a pull waits, and two pulls do not wait for each other", async () => {
    const turns = createRepoTurns();
    const { signal } = new AbortController();
    const done = turns.tryTake(repoName);
    assert.ok(done);
    assert.equal(turns.tryTake(repoName), null);
    const order: string[] = [];
    const pulls = ["one", "two"].map(async (name) => {
      const release = await turns.take(repoName, signal);
      order.push(name);
      return release;
    });
    await (await turns.take("acme/other", signal))();
    assert.deepEqual(order, []);
    done();
    const releases = await Promise.all(pulls);
    assert.deepEqual([turns.tryTake(repoName), turns.taken()], [null, [repoName.toLowerCase()]]);
    for (const release of releases) release();
    assert.deepEqual(turns.taken(), []);
    const [abort, held] = [new AbortController(), turns.tryTake(repoName)];
    const waiting = turns.take(repoName, abort.signal);
    abort.abort(new Error("no longer wanted"));
    await assert.rejects(waiting, /no longer wanted/);
    held?.();
  });
});
