// What the cleaning of leftovers takes, and what it leaves.
import assert from "node:assert/strict";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openJournal, readJournal, thisOwner } from "../../src/hub/partial-journal.ts";
import { cleanPartials } from "../../src/hub/partials.ts";
import { startPulling } from "../support/pulling.ts";

const demo = { "demo-Q8_0.gguf": Buffer.alloc(3_000_000, "eight ") };
const id = "acme/demo-GGUF:Q8_0";

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
    const own = [`${blobs}/${digest}.gw.incomplete`, "models--acme--demo-GGUF/.0f0f.gw.incomplete"];
    for (const path of [...foreign, ...own]) {
      await mkdir(join(cacheDir, path, ".."), { recursive: true });
      await writeFile(join(cacheDir, path), "half");
    }
    assert.deepEqual(await cleanPartials(cacheDir), own.sort());
    assert.deepEqual(await world(), [...before, ...foreign].sort());
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
      "demo-Q8_0-00001-of-00002.gguf": Buffer.alloc(100_000, "one "),
      "demo-Q8_0-00002-of-00002.gguf": Buffer.alloc(2_000_000, "two "),
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
    assert.deepEqual(await cleanPartials(cacheDir, new Set(["Acme/demo-gguf:q8_0"])), []);
    assert.deepEqual(await world(), kept);
    assert.deepEqual(await cleanPartials(cacheDir, new Set(["acme/other:Q8_0"])), kept);
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
    hub.updateRepo("acme/demo-GGUF", { files: { "demo-Q8_0.gguf": Buffer.alloc(200_000, "new ") } });
    await pull(id);
    assert.equal((await world()).length, 3);
  });

  it("are not written by two processes at once, and not cleaned while another one writes", async (t) => {
    const { hub, refusal, pull, cacheDir, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    hub.dropAfter("demo-Q8_0.gguf", 1_000_000, 99);
    await refusal(id, { keepPartial: true, tuning: { tries: 1 } });
    const [journal = ""] = (await world()).filter((line) => line.includes(".journal."));
    const other = { ...thisOwner(), pid: process.ppid };
    const path = join(cacheDir, journal);
    const read = await readJournal(path);
    assert.ok(read);
    const writer = await openJournal(path, read.sequence);
    await writer.write({ ...read.record, owner: other });
    assert.equal((await refusal(id)).code, "cache_unwritable");
    assert.deepEqual(await cleanPartials(cacheDir), []);
    // After another start of the system only what was synced counts, and the process id says nothing.
    await writer.write({ ...read.record, synced: [[0, 500_000]], owner: { ...other, boot: "another" } });
    await writer.close();
    hub.dropAfter("demo-Q8_0.gguf", 0, 0);
    assert.equal((await pull(id)).resumedBytes, 500_000);
  });
});
