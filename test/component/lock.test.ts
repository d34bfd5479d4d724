// One gateway per state folder: refused, taken over from the dead, and never had by two.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { type ManagedProcess, startProcess } from "../../src/engines/managed-process.ts";
import { lockState } from "../../src/lifecycle.ts";
import { cleanUp } from "../support/clean-up.ts";
import { refusal, scratchFolder, until } from "../support/scratch.ts";

const deadHolder = JSON.stringify({ pid: 2 ** 22 - 7, started: "1", nonce: "a" });

interface Contender {
  readonly process: ManagedProcess;
  verdict(): string | undefined;
}

async function contend(t: TestContext, folder: string, startAt = 0): Promise<Contender> {
  let output = "";
  const script = fileURLToPath(new URL("../support/lock-contender.js", import.meta.url));
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
    ["a process that is gone", { pid: 2 ** 22 - 7, started: "1", nonce: "a" }],
    ["a pid that was given away again", { pid: process.pid, started: "1", nonce: "a" }],
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

  it("is taken over where it is a link to nothing", async (t) => {
    const folder = await scratchFolder(t);
    await symlink(join(folder, "nowhere"), join(folder, "gateway.lock"));
    const lock = await lockState(folder);
    assert.equal((await locked(folder)).pid, process.pid);
    await lock.release();
    assert.deepEqual(await readdir(folder), []);
  });

  it("that is a folder is named, with what to do", async (t) => {
    const folder = await scratchFolder(t);
    await mkdir(join(folder, "gateway.lock"));
    assert.match((await refusal(lockState(folder))).message, /gateway\.lock is no lock .*\(EISDIR\): delete it$/);
  });

  it("is renewed: held, taken again where the folder was deleted, and the one of before counts where that comes back", async (t) => {
    const folder = join(await scratchFolder(t), "state");
    const lock = await lockState(folder);
    assert.equal(await lock.renew(), "held");
    await rename(folder, `${folder}.away`);
    assert.equal(await lock.renew(), "retaken");
    assert.equal((await refusal(lockState(folder))).code, "invalid_request");
    await rm(folder, { recursive: true });
    await rename(`${folder}.away`, folder);
    assert.equal(await lock.renew(), "held");
    await lock.release();
    assert.deepEqual(await readdir(folder), []);
    assert.equal((await refusal(lock.renew())).code, "shutting_down");
  });

  it("of another is not released", async (t) => {
    const folder = await scratchFolder(t);
    const lock = await lockState(folder);
    await writeFile(join(folder, "gateway.lock"), deadHolder);
    await lock.release();
    assert.equal(await readFile(join(folder, "gateway.lock"), "utf8"), deadHolder);
  });

  it("is refused at once where no folder can be made", { skip: process.platform !== "linux" }, async () => {
    for (const path of ["/proc/none", "/proc/none/deeper", "/proc/self/none"]) {
      const error = await refusal(lockState(path));
      assert.equal(error.code, "invalid_request");
      assert.match(error.message, new RegExp(`^the state folder ${path} cannot be used \\(E[A-Z]+\\): .*--state$`));
    }
  });

  it("is taken over where a takeover was cut short", async (t) => {
    const folder = await scratchFolder(t);
    // As a gateway leaves it that was killed with the right to replace the dead lock in its hands.
    const name = createHash("sha256").update(deadHolder).digest("hex").slice(0, 12);
    await writeFile(join(folder, "gateway.lock"), deadHolder);
    await writeFile(
      join(folder, `gateway.lock.after-${name}`),
      JSON.stringify({ pid: 2 ** 22 - 9, started: "1", nonce: "b" }),
    );
    const lock = await lockState(folder);
    assert.equal((await locked(folder)).pid, process.pid);
    await lock.release();
    assert.deepEqual(await readdir(folder), []);
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
      for (const text of verdicts.filter((one) => one !== "won")) assert.match(text, new RegExp(`process ${pid}\\b`));
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
          assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
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
