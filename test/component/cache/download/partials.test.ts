// What the cleaning of leftovers takes, and what it leaves.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { frontOf } from "../../../../src/cache/download/extents.ts";
import { openPartial, type PartialFile } from "../../../../src/cache/download/partial-file.ts";
import { type Owner, thisOwner, writerName } from "../../../../src/cache/download/partial-owner.ts";
import { cleanPartials } from "../../../../src/cache/download/partials.ts";
import { partialPath } from "../../../../src/cache/layout/layout.ts";
import type { GatewayError } from "../../../../src/core/errors.ts";
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
    const alive = `${repo}/.${writerName().replace(`-${process.pid}-`, `-${process.ppid}-`)}.gw.incomplete`;
    const own = `${repo}/.${writerName()}.gw.incomplete`;
    for (const path of [...foreign, ...unknown, alive, own]) {
      await mkdir(join(cacheDir, path, ".."), { recursive: true });
      await writeFile(join(cacheDir, path), "half");
    }
    assert.deepEqual(await cleanPartials(cacheDir), [own]);
    assert.deepEqual(await world(), [...before, ...foreign, ...unknown, alive].sort());
    for (const path of [...foreign, ...unknown, alive]) await age(join(cacheDir, path), 8 * dayMs);
    assert.deepEqual(await cleanPartials(cacheDir), unknown.sort());
    assert.deepEqual(await world(), [...before, ...foreign, alive].sort());
    assert.deepEqual(await cleanPartials(join(cacheDir, "nowhere")), []);
  });

  it("leaves the one that is being written", async (t) => {
    const { hub, pull, cacheDir, shown, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    const hold = hub.throttle("demo-Q8_0.gguf", 2_000_000);
    let pulled: Promise<unknown> | undefined;
    await new Promise<void>((resolve) => {
      pulled = pull(id, { onProgress: (step) => (step.completed > 0 ? resolve() : undefined) });
    });
    assert.equal(
      (await world()).some((line) => line.endsWith(".gw.incomplete")),
      true,
    );
    assert.deepEqual(await cleanPartials(cacheDir), []);
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
    assert.equal((await refusal(id, { keepPartial: true, tuning: { tries: 1 } })).code, "hub_unreachable");
    const kept = await world();
    const repo = join(cacheDir, "models--acme--demo-GGUF");
    // Without it other readers of the cache take the folder for damaged.
    assert.deepEqual((await readdir(repo)).sort(), ["blobs", "snapshots"]);
    // A whole shard with the note for whom it is, a part of another with its journal.
    assert.equal(kept.length, 4);
    assert.deepEqual(await cleanPartials(cacheDir, () => ["Acme/demo-gguf:q8_0"]), []);
    assert.deepEqual(await world(), kept);
    assert.deepEqual(await cleanPartials(cacheDir, () => ["acme/other:Q8_0"]), kept);
    assert.deepEqual(await world(), []);
    await assert.rejects(readdir(repo), { code: "ENOENT" });

    // What a snapshot shows is no leftover, whatever a journal says.
    await refusal(id, { keepPartial: true, tuning: { tries: 1 } });
    const [whole = ""] = (await world()).filter((line) => !line.endsWith(".incomplete"));
    const snapshot = join(cacheDir, "models--acme--demo-GGUF/snapshots", "a".repeat(40));
    await mkdir(snapshot, { recursive: true });
    await symlink(`../../blobs/${whole.slice(-64)}`, join(snapshot, "x.gguf"));
    await cleanPartials(cacheDir);
    assert.equal((await world()).includes(whole), true);
    hub.dropAfter("demo-Q8_0-00002-of-00002.gguf", 0, 0);
    assert.equal((await pull(id)).downloadedBytes, 2_000_000);
  });

  it("of an older commit go once the model is there", async (t) => {
    const { hub, pull, refusal, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    hub.dropAfter("demo-Q8_0.gguf", 1_000_000, 99);
    await refusal(id, { keepPartial: true, tuning: { tries: 1 } });
    hub.dropAfter("demo-Q8_0.gguf", 0, 0);
    hub.updateRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": withGgufHead(Buffer.alloc(200_000, "new ")) } });
    await pull(id);
    assert.equal((await world()).length, 3);
  });

  it("of another gateway stay for days, and as long as its process runs; its own go at once", async (t) => {
    const { cacheDir, world } = await startPulling(t);
    const left = async (owner: Owner): Promise<string[]> => {
      await (await half(cacheDir, owner)).keep();
      return (await world()).sort();
    };
    const mine = await left(thisOwner("mine"));
    assert.equal(mine.length, 2);
    assert.deepEqual(await cleanPartials(cacheDir, () => [], "another"), []);
    assert.deepEqual(await cleanPartials(cacheDir, () => [id], "mine"), []);
    assert.deepEqual(await cleanPartials(cacheDir, () => [], "mine"), mine);
    for (const [owner, ms, goes] of [
      [{ ...thisOwner("another"), boot: "another" }, 6 * dayMs, false],
      [{ ...thisOwner("another"), boot: "another" }, 8 * dayMs, true],
      [{ ...thisOwner("another"), pid: process.ppid }, 100 * dayMs, false],
    ] as const) {
      const paths = await left(owner);
      for (const path of paths) await age(join(cacheDir, path), ms);
      assert.deepEqual(await cleanPartials(cacheDir, () => [], "mine"), goes ? paths : []);
      await rm(join(cacheDir, "models--acme--demo-GGUF"), { recursive: true, force: true });
    }
  });

  it("are left alone by a pull of the same name in another gateway", async (t) => {
    const { hub, pull, cacheDir, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": withGgufHead(Buffer.alloc(200_000, "new ")) } });
    const other = await half(cacheDir, { ...thisOwner("another"), pid: process.ppid });
    const written = (await world()).sort();
    await pull(id, { gateway: "mine" });
    assert.deepEqual((await world()).filter((line) => line.endsWith(".incomplete")).sort(), written);
    await other.write(1_500_000, [whole.subarray(1_500_000)]);
    await other.finish(join(cacheDir, "models--acme--demo-GGUF/blobs", digest));
    assert.deepEqual(await readFile(join(cacheDir, "models--acme--demo-GGUF/blobs", digest)), whole);
  });

  it("are gone with that serve nobody once the file is there, and the journal of a model that is shown", async (t) => {
    const { hub, pull, cacheDir, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    // As a kill leaves it between the linking and the end.
    const partial = await half(cacheDir, thisOwner("mine"));
    await partial.write(1_500_000, [whole.subarray(1_500_000)]);
    await partial.finish(join(cacheDir, "models--acme--demo-GGUF/blobs", digest));
    const [journal = ""] = (await world()).filter((line) => line.includes(".journal."));
    const text = await readFile(join(cacheDir, journal));
    assert.deepEqual((await pull(id, { gateway: "mine" })).files[0], {
      path: "demo-Q8_0.gguf",
      blob: digest,
      size: whole.length,
    });
    assert.equal((await world()).length, 3);
    await writeFile(join(cacheDir, journal), text);
    assert.deepEqual(await cleanPartials(cacheDir, () => [id], "mine"), [journal]);
    assert.equal((await world()).length, 3);
  });
});

const whole = demo["demo-Q8_0.gguf"];
const digest = sha256(whole);

/** A writer, of any process, that has half of the file. */
async function half(cacheDir: string, self: Owner): Promise<PartialFile> {
  const path = partialPath(cacheDir, "acme/demo-GGUF", digest);
  const { signal } = new AbortController();
  const partial = await openPartial({ path, model: id, size: whole.length, self, signal });
  const at = frontOf(partial.extents());
  await partial.write(at, [whole.subarray(at, 1_500_000)]);
  return partial;
}

describe("two gateways and one file", () => {
  it("only one downloads it, as long as it is seen to be at it", async (t) => {
    const { hub, refusal, cacheDir, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    for (const owner of [
      { ...thisOwner("another"), pid: process.ppid },
      { ...thisOwner("another"), space: "another container" },
    ]) {
      const other = await half(cacheDir, owner);
      const before = await world();
      assert.equal((await refusal(id, { gateway: "mine" })).code, "cache_unwritable");
      assert.deepEqual(await world(), before);
      await other.discard();
    }
  });

  it("one that fell silent keeps a file of its own, so that its late bytes harm nobody", async (t) => {
    const { hub, pull, cacheDir, world, shown } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    for (const owner of [
      { ...thisOwner("another"), pid: process.ppid },
      { ...thisOwner("another"), space: "another container" },
    ]) {
      const other = await half(cacheDir, owner);
      const written = await world();
      for (const line of written.filter((name) => name.endsWith(".incomplete")))
        await age(join(cacheDir, line), 7 * 60_000);
      // What it has counts, where it is not newer than its last record.
      const { resumedBytes, downloadedBytes } = await pull(id, { gateway: "mine" });
      assert.equal(resumedBytes + downloadedBytes, whole.length);
      await other.write(1_500_000, [Buffer.alloc(1_500_000, "late and wrong ")]);
      assert.deepEqual(await shown("acme/demo-GGUF", "demo-Q8_0.gguf"), whole);
      await other.discard();
      assert.equal((await world()).length, 3);
      await rm(join(cacheDir, "models--acme--demo-GGUF"), { recursive: true });
    }
  });

  it("what a dead one left is taken by one of those that want it, and goes on in place", async (t) => {
    const { cacheDir, world } = await startPulling(t);
    await (await half(cacheDir, { ...thisOwner(), pid: deadPid })).keep();
    // Two processes: of two gateways in one process the later may take the earlier's file.
    const outcomes = await Promise.allSettled(
      [thisOwner("a"), { ...thisOwner("b"), pid: process.ppid }].map((owner) => half(cacheDir, owner)),
    );
    const opened = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    // The later is refused if it sees the earlier at work.
    for (const outcome of outcomes)
      if (outcome.status === "rejected") assert.equal((outcome.reason as GatewayError).code, "cache_unwritable");
    assert.equal(new Set(opened.map(({ path }) => path)).size, opened.length);
    assert.equal((await world()).length, 2 * opened.length);
    const [last, ...others] = opened;
    assert.ok(last);
    for (const other of others) await other.discard();
    // A partial that was taken away is noticed, and not filled for nothing.
    await rm(last.path);
    await refusalOf(last.finish(join(cacheDir, digest)));
    await last.keep();
    assert.deepEqual(await world(), []);
  });

  it("after another start of the system only what was synced counts", async (t) => {
    const { hub, pull, cacheDir } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    const before = await half(cacheDir, { ...thisOwner("mine"), boot: "another" });
    await before.keep();
    assert.equal((await pull(id, { gateway: "mine" })).resumedBytes, 1_500_000);
  });
});

/** Of no process: above what Linux gives out. */
const deadPid = 2 ** 22 + 1;
