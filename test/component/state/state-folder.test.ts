// The state folder under a running gateway: deleted, replaced, read-only, full. Changes are refused whole until it is mended.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { type DesiredStore, openDesiredStore } from "../../../src/desired/store.ts";
import { lockState } from "../../../src/state/lock.ts";
import { createStateFolder, type StateFolder, type StateFolderReport } from "../../../src/state/state-folder.ts";
import { cleanUp } from "../../support/clean-up.ts";
import { cannotMount, mountDisk } from "../../support/mounts.ts";
import { refusal, scratchFolder } from "../../support/scratch.ts";

const model = "acme/a:Q8_0";

interface Open {
  readonly stateDir: string;
  readonly folder: StateFolder;
  readonly store: DesiredStore;
  readonly told: StateFolderReport[];
  edit(size: number): Promise<unknown>;
  /** The context size that the disk would give a next start. */
  onDisk(): Promise<number | "auto" | undefined>;
}

/** A folder with a document of one model, as a gateway has it. */
async function openFolder(t: TestContext, stateDir?: string): Promise<Open> {
  const dir = stateDir ?? join(await scratchFolder(t), "state");
  const told: StateFolderReport[] = [];
  const lock = await lockState(dir);
  cleanUp(t, lock.release);
  const folder = createStateFolder({
    stateDir: dir,
    hold: lock.hold,
    onChange: (report) => void told.push(report),
  });
  const options = { stateDir: dir, now: Date.now, warn: () => undefined };
  const store = await openDesiredStore({ ...options, files: folder });
  const edit = (ctxSize: number): Promise<unknown> =>
    store.change({ kind: "patch", patch: { models: { [model]: { ctxSize } } } }, "api");
  await edit(1024);
  return {
    stateDir: dir,
    folder,
    store,
    told,
    edit,
    onDisk: async () => (await openDesiredStore(options)).current().document.models[0]?.ctxSize,
  };
}

describe("the state folder", () => {
  it("that is deleted or replaced takes no changes, and is left as it is until the old one is back", async (t) => {
    const { stateDir, folder, store, edit, onDisk } = await openFolder(t);
    await rename(stateDir, `${stateDir}.away`);
    const refused = async (): Promise<void> => {
      const error = await refusal(edit(2048));
      assert.equal(error.code, "state_unwritable");
      assert.match(error.message, /put the folder back, or restart the gateway/);
      await folder.look();
      assert.deepEqual([folder.report().writable, folder.report().reason], [false, "StateUnwritable"]);
      assert.equal(store.current().document.models[0]?.ctxSize, 1024);
    };
    await refused();
    await assert.rejects(stat(stateDir));

    await mkdir(stateDir);
    const others = `{"generation": 9, "tree": {"version": 1, "prune": true}, "owners": {}}`;
    await writeFile(join(stateDir, "desired.json"), others);
    await refused();
    assert.deepEqual(await readdir(stateDir), ["desired.json"]);
    assert.equal(await readFile(join(stateDir, "desired.json"), "utf8"), others);

    await rm(stateDir, { recursive: true });
    await rename(`${stateDir}.away`, stateDir);
    await folder.look();
    assert.equal(folder.report().reason, "Writable");
    await edit(2048);
    assert.equal(await onDisk(), 2048);
  });

  it("that goes during a write is reported as a folder that is gone, not as a file", async (t) => {
    const stateDir = join(await scratchFolder(t), "state");
    const lock = await lockState(stateDir);
    const told: StateFolderReport[] = [];
    let goes = true;
    const hold = async (): Promise<void> => {
      await lock.hold();
      if (goes) await rename(stateDir, `${stateDir}.away`);
      goes = false;
    };
    const folder = createStateFolder({ stateDir, hold, onChange: (report) => void told.push(report) });
    const error = await refusal(folder.write(join(stateDir, "history.json"), "{}"));
    assert.match(error.message, /put the folder back, or restart the gateway/);
    assert.deepEqual([told.length, told[0]?.reason], [1, "StateUnwritable"]);
    assert.match(told[0]?.message ?? "", /put the folder back/);
    await assert.rejects(stat(stateDir));
  });

  it("that another gateway took is not written any more", async (t) => {
    const { stateDir, edit, onDisk } = await openFolder(t);
    await writeFile(join(stateDir, "gateway.lock"), JSON.stringify({ pid: 1, started: "", id: "x" }));
    const error = await refusal(edit(2048));
    assert.equal(error.code, "state_unwritable");
    assert.match(error.message, /gateway\.lock .* another gateway's/);
    assert.equal(await onDisk(), 1024);
  });

  it("tells of damaged files that were set aside, until somebody has deleted them", async (t) => {
    const stateDir = await scratchFolder(t);
    await writeFile(join(stateDir, "desired.json"), "{");
    const { folder } = await openFolder(t, stateDir);
    await folder.look();
    const { writable, reason, message } = folder.report();
    assert.deepEqual([writable, reason], [true, "FilesSetAside"]);
    const [aside = ""] = (await readdir(stateDir)).filter((name) => name.includes(".corrupt-"));
    assert.ok(message.includes(aside));
    await rm(join(stateDir, aside));
    await folder.look();
    assert.equal(folder.report().reason, "Writable");
  });

  it("that is read-only refuses edits, is told before anybody tries, and is well again by itself", {
    skip: cannotMount,
  }, async (t) => {
    const stateDir = await scratchFolder(t);
    const disk = mountDisk(t, stateDir);
    const { folder, store, edit, onDisk } = await openFolder(t, stateDir);
    await disk.remount("remount,ro");
    await folder.look();
    assert.match(folder.report().message, /EROFS/);
    assert.match((await refusal(edit(2048))).message, /EROFS/);
    assert.equal(store.current().document.models[0]?.ctxSize, 1024);
    await disk.remount("remount,rw");
    await folder.look();
    assert.equal(folder.report().reason, "Writable");
    await edit(2048);
    assert.equal(await onDisk(), 2048);
  });

  it("that is full refuses edits, leaves no part of them, and is well again once there is room", {
    skip: cannotMount,
  }, async (t) => {
    const stateDir = await scratchFolder(t);
    mountDisk(t, stateDir, "64k");
    const { folder, edit, onDisk } = await openFolder(t, stateDir);
    const ballast = join(stateDir, "ballast");
    await assert.rejects(writeFile(ballast, Buffer.alloc(1 << 20)));
    const error = await refusal(edit(2048));
    assert.equal(error.code, "disk_full");
    assert.equal(folder.report().reason, "DiskFull");
    assert.equal(await onDisk(), 1024);
    assert.deepEqual((await readdir(stateDir)).toSorted(), ["ballast", "desired.json", "gateway.lock"]);
    await folder.look();
    assert.equal(folder.report().writable, false);
    await rm(ballast);
    await folder.look();
    assert.equal(folder.report().reason, "Writable");
    await edit(2048);
    assert.equal(await onDisk(), 2048);
  });
});
