// Child processes that behave badly: started, followed and ended for certain, with all that they started.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { getPriority } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { type ManagedProcess, startProcess } from "../../../../src/engines/process/managed-process.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { isRunning } from "../../../support/processes.ts";
import { fakeEngine, refusal, scratchFolder, until } from "../../../support/scratch.ts";

interface Started {
  readonly process: ManagedProcess;
  output(): string;
  /** The pid of the part that says it is ready under this name. */
  ready(name?: string): Promise<number>;
}

async function start(t: TestContext, ...flags: readonly string[]): Promise<Started> {
  let output = "";
  const started = await startProcess({
    path: process.execPath,
    args: fakeEngine(...flags),
    environment: {},
    workingDir: await scratchFolder(t),
    onOutput: (text) => {
      output += text;
    },
  });
  cleanUp(t, () => started.stop(0));
  return {
    process: started,
    output: () => output,
    ready: async (name = "engine") =>
      Number(
        (await until(`${name} is ready: ${output}`, () => new RegExp(`^${name} ready (\\d+)$`, "m").exec(output)))[1],
      ),
  };
}

async function gone(pid: number): Promise<void> {
  await until(`process ${pid} has ended`, async () => !(await isRunning(pid)));
}

const autogroup = "/proc/self/autogroup";
const onAutogroups = { skip: existsSync(autogroup) ? false : "this kernel groups no sessions" };

describe("a managed process", { concurrency: true }, () => {
  it("leaves the first turn to this one, also where sessions are weighed first", onAutogroups, async (t) => {
    const engine = await start(t);
    const pid = await engine.ready();
    assert.equal(getPriority(pid), 4);
    assert.match(await readFile(`/proc/${pid}/autogroup`, "utf8"), / nice 4$/m);
  });

  it("runs in a group of its own and ends at TERM, before the grace is over", async (t) => {
    const { process: engine, ready } = await start(t);
    assert.equal(await ready(), engine.pid);
    assert.equal(engine.hasExited(), false);
    const began = Date.now();
    assert.deepEqual(await engine.stop(60_000), { code: null, signal: "SIGTERM" });
    assert.ok(Date.now() - began < 50_000);
    assert.equal(engine.hasExited(), true);
    assert.equal(await isRunning(engine.pid), false);
  });

  it("is killed after the grace where it does not listen", async (t) => {
    const { process: engine, ready, output } = await start(t, "--ignore-term");
    await ready();
    assert.deepEqual(await engine.stop(150), { code: null, signal: "SIGKILL" });
    assert.match(output(), /TERM ignored/);
  });

  it("takes its whole group along, with what its own end would leave behind", async (t) => {
    const { process: engine, ready } = await start(t, "--fork");
    const [, grandchild] = await Promise.all([ready(), ready("grandchild")]);
    const began = Date.now();
    assert.equal((await engine.stop(60_000)).signal, "SIGTERM");
    // The grandchild holds the output open: waiting for that would last the whole grace.
    assert.ok(Date.now() - began < 50_000);
    await gone(grandchild);
  });

  it("takes its group along also where neither listens", async (t) => {
    const { process: engine, ready } = await start(t, "--fork", "--ignore-term");
    const [, grandchild] = await Promise.all([ready(), ready("grandchild")]);
    assert.equal((await engine.stop(100)).signal, "SIGKILL");
    await gone(grandchild);
  });

  it("that ends by itself is noticed though a child of it still holds its output", async (t) => {
    const { process: engine, ready } = await start(t, "--fork", "--delay=150", "--exit=3");
    const grandchild = await ready("grandchild");
    assert.deepEqual(await engine.exited, { code: 3, signal: null });
    assert.equal(engine.hasExited(), true);
    assert.equal(await isRunning(grandchild), true);
    // The end of a start that failed: nothing of it stays.
    assert.deepEqual(await engine.stop(1_000), { code: 3, signal: null });
    await gone(grandchild);
  });

  it("is asked to end once, however often and impatiently", async (t) => {
    const { process: engine, ready, output } = await start(t, "--ignore-term");
    await ready();
    const exits = await Promise.all([engine.stop(300), engine.stop(10_000), engine.stop(0)]);
    assert.deepEqual(
      exits.map(({ signal }) => signal),
      ["SIGKILL", "SIGKILL", "SIGKILL"],
    );
    assert.equal(output().match(/TERM ignored/g)?.length, 1);
    assert.equal((await engine.stop(0)).signal, "SIGKILL");
  });

  it("tells how it ended when somebody else ends it", async (t) => {
    const { process: engine, ready } = await start(t);
    process.kill(await ready(), "SIGKILL");
    assert.deepEqual(await engine.exited, { code: null, signal: "SIGKILL" });
  });

  it("prints nothing that acts on a terminal", async (t) => {
    let output = "";
    const engine = await startProcess({
      path: "/bin/sh",
      args: ["-c", "printf '\\033]0;title\\007\\033[2Jarch\\ta\\r\\n'"],
      environment: {},
      workingDir: await scratchFolder(t),
      onOutput: (text) => void (output += text),
    });
    await engine.exited;
    await until("it has printed", () => output !== "" || null);
    assert.deepEqual([output, engine.lastWords()], ["]0;title[2Jarch\ta\r\n", "]0;title[2Jarch\ta"]);
  });

  it("keeps of a long output the last lines, and no more", async (t) => {
    const { process: engine, ready } = await start(t, "--print=3000000", "--exit=1");
    await ready();
    await engine.exited;
    const words = engine.lastWords();
    assert.ok(words.length <= 4096, `${words.length} characters`);
    const lines = words.split("\n");
    assert.ok(lines.length >= 5 && lines.length <= 20, `${lines.length} lines`);
    assert.equal(lines.at(-1), `engine ready ${engine.pid}`);
    assert.match(lines.at(-2) ?? "", /^line \d{5} x+$/);
  });

  it("has its last words from both outputs, also those written in its last moment", async (t) => {
    const folder = await scratchFolder(t);
    const path = join(folder, "dying");
    await writeFile(path, "#!/bin/sh\necho out\necho 'cannot load: no such file' >&2\nexit 7\n");
    await chmod(path, 0o755);
    const dying = await startProcess({ path, args: [], environment: {}, workingDir: folder });
    assert.deepEqual(await dying.exited, { code: 7, signal: null });
    assert.deepEqual(dying.lastWords().split("\n").sort(), ["cannot load: no such file", "out"]);
  });

  it("gets the environment it is given and nothing of ours", async (t) => {
    const folder = await scratchFolder(t);
    const path = join(folder, "show");
    await writeFile(path, "#!/bin/sh\nenv\n");
    await chmod(path, 0o755);
    const shown = await startProcess({ path, args: [], environment: { ONLY: "this" }, workingDir: folder });
    await shown.exited;
    const names = shown
      .lastWords()
      .split("\n")
      .map((line) => line.split("=")[0]);
    assert.deepEqual(
      names.filter((name) => !["PWD", "SHLVL", "_", "OLDPWD"].includes(name ?? "")),
      ["ONLY"],
    );
  });
});

describe("a program that cannot be started", () => {
  for (const [what, make] of [
    ["is not there", async () => undefined],
    ["is not executable", (path: string) => writeFile(path, "#!/bin/sh\n", { mode: 0o644 })],
  ] as const) {
    it(`is a missing engine: it ${what}`, async (t) => {
      const folder = await scratchFolder(t);
      const path = join(folder, "llama-server");
      await make(path);
      const error = await refusal(startProcess({ path, args: [], environment: {}, workingDir: folder }));
      assert.equal(error.code, "engine_missing");
      assert.ok(error.message.startsWith(`${path} cannot be started (E`), error.message);
    });
  }
});
