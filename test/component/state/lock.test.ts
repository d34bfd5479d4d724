// One gateway per state folder: refused, taken over from the dead, and never had by two.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { type ManagedProcess, startProcess } from "../../../src/engines/process/managed-process.ts";
import { lockHolder, lockState } from "../../../src/state/lock.ts";
import { cleanUp } from "../../support/clean-up.ts";
import { cannotMount, type Disk, mountDisk } from "../../support/mounts.ts";
import { refusal, scratchFolder, until } from "../../support/scratch.ts";

const deadHolder = JSON.stringify({ pid: 2 ** 22 - 7, started: "1", id: "a" });

interface Contender {
  readonly process: ManagedProcess;
  verdict(): string | undefined;
}

async function contend(t: TestContext, folder: string, startAt = 0): Promise<Contender> {
  let output = "";
  const script = fileURLToPath(new URL("../../support/lock-contender.js", import.meta.url));
  const contender = await startProcess({
    path: process.execPath,
    args: [script, folder, String(startAt)],
    environment: {},
    workingDir: await scratchFolder(t),
    onOutput: (text) => {
      output += text;
    },
  });
  cleanUp(t, () => contender.stop(0));
  return { process: contender, verdict: () => /^(won|lost.*)$/m.exec(output)?.[0] };
}

async function verdict(contender: Contender): Promise<string> {
  return until("a verdict", contender.verdict);
}

async function locked(folder: string): Promise<{ pid: number; started: string }> {
  return JSON.parse(await readFile(join(folder, "gateway.lock"), "utf8")) as { pid: number; started: string };
}

describe("the lock of a state folder", () => {
  it("makes the folder, holds off a second gateway naming the first, and goes with its release", async (t) => {
    const folder = join(await scratchFolder(t), "deep", "state");
    const lock = await lockState(folder);
    const error = await refusal(lockState(folder));
    assert.equal(error.code, "invalid_request");
    assert.equal(error.message, `another gateway (process ${process.pid}) has the state folder ${folder}`);
    assert.deepEqual(await readdir(folder), ["gateway.lock"]);
    await lock.release();
    assert.deepEqual(await readdir(folder), []);
    await (await lockState(folder)).release();
  });

  it("is not released a second time, when it is another's", async (t) => {
    const folder = await scratchFolder(t);
    const first = await lockState(folder);
    await first.release();
    const second = await lockState(folder);
    await first.release();
    assert.equal((await refusal(lockState(folder))).code, "invalid_request");
    await second.release();
  });

  it("refuses while another process has it, and is free when that was killed", async (t) => {
    const folder = await scratchFolder(t);
    const other = await contend(t, folder);
    assert.equal(await verdict(other), "won");
    assert.match((await refusal(lockState(folder))).message, new RegExp(`process ${other.process.pid}\\b`));
    process.kill(other.process.pid, "SIGKILL");
    await other.process.exited;
    await (await lockState(folder)).release();
    assert.deepEqual(await readdir(folder), []);
  });

  for (const [what, holder] of [
    ["a process that is gone", { pid: 2 ** 22 - 7, started: "1", id: "a" }],
    ["a pid that was given away again", { pid: process.pid, started: "1", id: "a" }],
    ["no number", { pid: "many", started: 7 }],
    ["a number that means a group", { pid: -1, started: "1" }],
  ] as const) {
    it(`is taken over from ${what}`, async (t) => {
      const folder = await scratchFolder(t);
      await writeFile(join(folder, "gateway.lock"), JSON.stringify(holder));
      const lock = await lockState(folder);
      assert.equal((await locked(folder)).pid, process.pid);
      assert.notEqual((await locked(folder)).started, "1");
      assert.equal((await refusal(lockState(folder))).code, "invalid_request");
      await lock.release();
      assert.deepEqual(await readdir(folder), []);
    });
  }

  for (const text of ["", "{", "null"]) {
    it(`is taken over where its content is ${JSON.stringify(text)}`, async (t) => {
      const folder = await scratchFolder(t);
      await writeFile(join(folder, "gateway.lock"), text);
      await (await lockState(folder)).release();
      assert.deepEqual(await readdir(folder), []);
    });
  }

  it("is held with the newest address, and not where the folder was deleted or is another's, until it is back", async (t) => {
    const folder = join(await scratchFolder(t), "state");
    const lock = await lockState(folder);
    await lock.hold();
    assert.equal((await lockHolder(folder))?.url, null);
    lock.announce("http://127.0.0.1:9000");
    await lock.hold();
    const holder = await lockHolder(folder);
    assert.deepEqual([holder?.pid, holder?.id, holder?.url], [process.pid, lock.id, "http://127.0.0.1:9000"]);
    assert.match((await refusal(lockState(folder))).message, /\(process \d+, http:\/\/127\.0\.0\.1:9000\)/);

    await rename(folder, `${folder}.away`);
    assert.equal((await refusal(lock.hold())).code, "state_unwritable");
    const other = await lockState(folder);
    assert.equal((await refusal(lock.hold())).code, "state_unwritable");
    await lock.release();
    assert.equal((await lockHolder(folder))?.id, other.id, "the other's stays");
    await other.release();
  });

  for (const [what, hinder] of [
    ["read-only", (disk: Disk) => disk.remount("remount,ro")],
    ["full", (_: Disk, folder: string) => assert.rejects(writeFile(join(folder, "ballast"), Buffer.alloc(1 << 20)))],
  ] as const) {
    it(`on a ${what} disk is written once the disk takes it`, {
      skip: cannotMount,
    }, async (t) => {
      const folder = await scratchFolder(t);
      const disk = mountDisk(t, folder, "64k");
      await writeFile(join(folder, "gateway.lock"), deadHolder);
      await hinder(disk, folder);
      const lock = await lockState(folder);
      cleanUp(t, lock.release);
      assert.match((await refusal(lock.hold())).code, /^(state_unwritable|disk_full)$/);
      assert.equal(await readFile(join(folder, "gateway.lock"), "utf8"), deadHolder);
      await disk.remount("remount,rw,size=4m");
      lock.announce("http://127.0.0.1:9000");
      await lock.hold();
      assert.equal((await lockHolder(folder))?.url, "http://127.0.0.1:9000");
    });
  }

  it("is had also where a process died while it replaced one", async (t) => {
    const folder = await scratchFolder(t);
    for (const name of ["gateway.lock", "gateway.lock.claim"]) await writeFile(join(folder, name), deadHolder);
    const lock = await lockState(folder);
    assert.deepEqual(await readdir(folder), ["gateway.lock"]);
    await lock.release();
  });

  it("of another is not released", async (t) => {
    const folder = await scratchFolder(t);
    const lock = await lockState(folder);
    await writeFile(join(folder, "gateway.lock"), deadHolder);
    await lock.release();
    assert.equal(await readFile(join(folder, "gateway.lock"), "utf8"), deadHolder);
  });

  for (const stale of [false, true]) {
    const whose = stale ? "a dead one's" : "a free";

    it(`is had by exactly one of several processes that race for ${whose} lock`, async (t) => {
      const folder = await scratchFolder(t);
      if (stale) await writeFile(join(folder, "gateway.lock"), deadHolder);
      const startAt = Date.now() + 400;
      const contenders = await Promise.all(Array.from({ length: 4 }, () => contend(t, folder, startAt)));
      const verdicts = await Promise.all(contenders.map(verdict));
      const winners = contenders.filter((_, index) => verdicts[index] === "won");
      assert.equal(winners.length, 1, verdicts.join("\n"));
      const pid = winners[0]?.process.pid;
      assert.equal((await locked(folder)).pid, pid);
      const loss = new RegExp(`^lost: another gateway \\(process ${pid}\\) has the state folder`);
      for (const text of verdicts.filter((one) => one !== "won")) assert.match(text, loss);
      assert.deepEqual(await readdir(folder), ["gateway.lock"]);
    });

    it(`is had by exactly one of many calls at once for ${whose} lock`, async (t) => {
      const root = await scratchFolder(t);
      const folders = Array.from({ length: 30 }, (_, index) => join(root, String(index)));
      await Promise.all(
        folders.map(async (folder) => {
          await mkdir(folder);
          if (stale) await writeFile(join(folder, "gateway.lock"), deadHolder);
          const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => lockState(folder)));
          const locks = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
          for (const lock of locks) cleanUp(t, lock.release);
          assert.equal(locks.length, 1);
          assert.deepEqual(await readdir(folder), ["gateway.lock"]);
        }),
      );
    });
  }

  it("says what is wrong where the folder cannot be used", async (t) => {
    const folder = join(await scratchFolder(t), "plain");
    await writeFile(folder, "");
    for (const path of [folder, join(folder, "deeper")]) {
      const error = await refusal(lockState(path));
      assert.equal(error.code, "invalid_request");
      assert.match(error.message, /^the state folder .* cannot be used \((EEXIST|ENOTDIR)\): .*--state$/);
    }
  });
});
