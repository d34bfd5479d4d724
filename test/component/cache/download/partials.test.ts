// What the cleaning of leftovers takes, and what it leaves.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { describe, it } from "node:test";
import { frontOf } from "../../../../src/cache/download/extents.ts";
import { cleanPartials } from "../../../../src/cache/download/leftovers.ts";
import { openPartial, type PartialFile } from "../../../../src/cache/download/partial-file.ts";
import { besidePartial, partialPath } from "../../../../src/cache/layout/layout.ts";
import { sha256, withGgufHead } from "../../../support/cache-folder.ts";
import { startPulling } from "../../../support/pulling.ts";
import { refusal as refusalOf } from "../../../support/scratch.ts";

const demo = { "demo-Q8_0.gguf": withGgufHead(Buffer.alloc(3_000_000, "eight ")) };
const id = "acme/demo-GGUF:Q8_0";
const dayMs = 24 * 3_600_000;

async function age(path: string, ms: number): Promise<void> {
  const then = new Date(Date.now() - ms);
  await utimes(path, then, then);
}

describe("cleaning partials", () => {
  it("removes our own and leaves those of other tools", async (t) => {
    const { hub, pull, cacheDir, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    await pull(id);
    const before = await world();
    const blobs = "models--acme--demo-GGUF/blobs";
    const digest = "ab".repeat(32);
    const foreign = [
      `${blobs}/${digest}.incomplete`,
      `${blobs}/${digest}.0123abcd.incomplete`,
      `${blobs}/${digest}.downloadInProgress`,
      `.locks/models--acme--demo-GGUF/${digest}.lock`,
      `datasets--acme--data/blobs/${digest}.gw.incomplete`,
    ];
    const repo = "models--acme--demo-GGUF";
    // Of which nobody can tell who made them.
    const unknown = [`${blobs}/${digest}.gw.incomplete`, `${repo}/.0f0f.gw.incomplete`];
    const alive = `${repo}/.${process.ppid}-0f0f.gw.incomplete`;
    const own = `${repo}/.${process.pid}-0f0f.gw.incomplete`;
    for (const path of [...foreign, ...unknown, alive, own]) {
      await mkdir(join(cacheDir, path, ".."), { recursive: true });
      await writeFile(join(cacheDir, path), "half");
    }
    const none = () => [];
    assert.deepEqual(await cleanPartials(cacheDir, none, "mine"), [own]);
    assert.deepEqual(await world(), [...before, ...foreign, ...unknown, alive].sort());
    for (const path of [...foreign, ...unknown, alive]) await age(join(cacheDir, path), 8 * dayMs);
    assert.deepEqual(await cleanPartials(cacheDir, none, "mine"), [...unknown, alive].sort());
    assert.deepEqual(await world(), [...before, ...foreign].sort());
    assert.deepEqual(await cleanPartials(join(cacheDir, "nowhere"), none, "mine"), []);
  });

  it("leaves the one that is being written", async (t) => {
    const { hub, pull, cacheDir, shown, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    const hold = hub.throttle("demo-Q8_0.gguf", 2_000_000);
    const pulled = pull(id);
    await hold.reached;
    assert.equal(
      (await world()).some((line) => line.endsWith(".gw.incomplete")),
      true,
    );
    assert.deepEqual(await cleanPartials(cacheDir, () => [], "mine"), []);
    hold.release();
    await pulled;
    assert.deepEqual(await shown("acme/demo-GGUF", "demo-Q8_0.gguf"), demo["demo-Q8_0.gguf"]);
  });
});

describe("partials that were kept", () => {
  it("stay for a model that is wanted, and go with their whole shards when it is not", async (t) => {
    const { hub, pull, refusal, cacheDir, world } = await startPulling(t);
    const shards = {
      "demo-Q8_0-00001-of-00002.gguf": withGgufHead(Buffer.alloc(100_000, "one ")),
      "demo-Q8_0-00002-of-00002.gguf": withGgufHead(Buffer.alloc(2_000_000, "two ")),
    };
    hub.addRepo("acme/demo-GGUF", { files: shards });
    hub.dropAfter("demo-Q8_0-00002-of-00002.gguf", 1_000_000, 99);
    assert.equal((await refusal(id, { isStillWanted: () => true, tuning: { tries: 1 } })).code, "hub_unreachable");
    const kept = await world();
    const repo = join(cacheDir, "models--acme--demo-GGUF");
    // Without it other readers of the cache take the folder for damaged.
    assert.deepEqual((await readdir(repo)).sort(), ["blobs", "snapshots"]);
    // A whole shard and a part of another, with their sidecars.
    assert.equal(kept.length, 4);
    assert.deepEqual(await cleanPartials(cacheDir, () => ["Acme/demo-gguf:q8_0"], "mine"), []);
    assert.deepEqual(await world(), kept);
    assert.deepEqual(await cleanPartials(cacheDir, () => ["acme/other:Q8_0"], "mine"), kept);
    assert.deepEqual(await world(), []);
    await assert.rejects(readdir(repo), { code: "ENOENT" });

    // What a blob has become is no leftover, whatever a sidecar says.
    await refusal(id, { isStillWanted: () => true, tuning: { tries: 1 } });
    const blob = join(repo, "blobs", sha256(shards["demo-Q8_0-00001-of-00002.gguf"]));
    await rename(`${blob}.gw.incomplete`, blob);
    await cleanPartials(cacheDir, () => [], "mine");
    assert.deepEqual(await world(), [relative(cacheDir, blob)]);
    hub.dropAfter("demo-Q8_0-00002-of-00002.gguf", 0, 0);
    assert.equal((await pull(id)).downloadedBytes, 2_000_000);
  });

  it("of an older commit go once the model is there", async (t) => {
    const { hub, pull, refusal, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    hub.dropAfter("demo-Q8_0.gguf", 1_000_000, 99);
    await refusal(id, { isStillWanted: () => true, tuning: { tries: 1 } });
    hub.dropAfter("demo-Q8_0.gguf", 0, 0);
    hub.updateRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": withGgufHead(Buffer.alloc(200_000, "new ")) } });
    await pull(id);
    assert.equal((await world()).length, 3);
  });

  it("of another gateway stay for days, and as long as it holds the lock; its own go at once", async (t) => {
    const { cacheDir, world } = await startPulling(t);
    const left = async (gateway: string): Promise<string[]> => {
      await (await half(cacheDir, gateway)).keep();
      return (await world()).sort();
    };
    const mine = await left("mine");
    assert.equal(mine.length, 2);
    assert.deepEqual(await cleanPartials(cacheDir, () => [], "another"), []);
    assert.deepEqual(await cleanPartials(cacheDir, () => [id], "mine"), []);
    assert.deepEqual(await cleanPartials(cacheDir, () => [], "mine"), mine);
    const paths = await left("another");
    for (const path of paths) await age(join(cacheDir, path), 6 * dayMs);
    assert.deepEqual(await cleanPartials(cacheDir, () => [], "mine"), []);
    for (const path of paths) await age(join(cacheDir, path), 8 * dayMs);
    const lock = await lockBy(cacheDir, { pid: process.ppid, id: "another" });
    await age(lock, 100 * dayMs);
    assert.deepEqual(await cleanPartials(cacheDir, () => [], "mine"), [], "the process that holds the lock runs");
    await rm(lock);
    assert.deepEqual(await cleanPartials(cacheDir, () => [], "mine"), paths);
  });

  it("are gone once the file is there, and the sidecar of a model that is shown", async (t) => {
    const { hub, pull, cacheDir, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    const partial = await half(cacheDir, "mine");
    await partial.write(1_500_000, [whole.subarray(1_500_000)]);
    await partial.setVerified();
    const [sidecar = ""] = (await world()).filter((line) => line.includes(".sidecar."));
    const text = await readFile(join(cacheDir, sidecar));
    await partial.finish(join(cacheDir, "models--acme--demo-GGUF/blobs", digest));
    // As a kill leaves it between the rename and the end; the inventory has the blob already.
    await writeFile(join(cacheDir, sidecar), text);
    const { files } = await pull(id, { vouched: () => "stored" });
    assert.deepEqual(files, [{ path: "demo-Q8_0.gguf", blob: digest, size: whole.length }]);
    assert.equal((await world()).length, 3);
    await writeFile(join(cacheDir, sidecar), text);
    assert.deepEqual(await cleanPartials(cacheDir, () => [id], "mine"), [sidecar]);
    assert.equal((await world()).length, 3);
  });
});

const whole = demo["demo-Q8_0.gguf"];
const digest = sha256(whole);

/** A writer of this process that has half of the file. */
async function half(cacheDir: string, gateway: string): Promise<PartialFile> {
  const path = partialPath(cacheDir, "acme/demo-GGUF", digest);
  const partial = await openPartial({ path, model: id, size: whole.length, gateway });
  const at = frontOf(partial.extents());
  await partial.write(at, [whole.subarray(at, 1_500_000)]);
  return partial;
}

/** The lock as another process writes it. */
async function lockBy(cacheDir: string, holder: { pid: number; id: string }): Promise<string> {
  const path = besidePartial(partialPath(cacheDir, "acme/demo-GGUF", digest), "lock");
  await writeFile(path, JSON.stringify({ started: "", ...holder }));
  return path;
}

/** Of no process: above what Linux gives out. */
const deadPid = 2 ** 22 + 1;

describe("two gateways and one file", () => {
  for (const [what, holder] of [
    ["a process that runs", { pid: process.ppid, id: "another" }],
    ["one that cannot be probed, as in a container", { pid: deadPid, id: "another" }],
  ] as const) {
    it(`the second one waits while ${what} holds the lock`, async (t) => {
      const { hub, pull, refusal, cacheDir, world } = await startPulling(t);
      hub.addRepo("acme/demo-GGUF", { files: demo });
      await (await half(cacheDir, "another")).keep();
      const lock = await lockBy(cacheDir, holder);
      const before = await world();
      assert.equal((await refusal(id)).code, "cache_unwritable");
      assert.deepEqual(await world(), before);
      assert.equal(hub.sentBytes("demo-Q8_0.gguf"), 0);
      // Released, as when the other one was stopped: its bytes count.
      await rm(lock);
      assert.equal((await pull(id)).resumedBytes, 1_500_000);
    });
  }

  it("one whose lock was broken writes into a file without a name, and takes nothing away", async (t) => {
    const { hub, pull, cacheDir, world, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    const other = await half(cacheDir, "another");
    const lock = await lockBy(cacheDir, { pid: deadPid, id: "another" });
    await age(lock, 70_000);
    const hold = hub.throttle("demo-Q8_0.gguf", 2_000_000);
    const pulled = pull(id);
    await hold.reached;
    await other.write(1_500_000, [Buffer.alloc(1_500_000, "late and wrong ")]);
    const refused = await refusalOf(other.finish(join(cacheDir, "models--acme--demo-GGUF/blobs", digest)));
    assert.equal(refused.code, "cache_unwritable");
    await other.keep();
    hold.release();
    assert.equal((await pulled).resumedBytes, 0);
    assert.deepEqual(await shown("acme/demo-GGUF", "demo-Q8_0.gguf"), whole);
    assert.equal((await world()).length, 3);
  });

  it("a gateway resumes in place what its killed process left, at once", async (t) => {
    const { hub, pull, cacheDir } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    await (await half(cacheDir, "mine")).keep();
    await lockBy(cacheDir, { pid: deadPid, id: "mine" });
    assert.equal((await pull(id)).resumedBytes, 1_500_000);
  });

  it("a partial that was deleted is noticed, and not filled for nothing", async (t) => {
    const { cacheDir, world } = await startPulling(t);
    const partial = await half(cacheDir, "mine");
    await rm(partial.path);
    assert.equal((await refusalOf(partial.finish(join(cacheDir, digest)))).code, "cache_unwritable");
    await partial.keep();
    assert.deepEqual(await world(), []);
  });
});
