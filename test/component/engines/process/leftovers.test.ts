// What a killed gateway leaves running is found and ended, and nothing else is.
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { endLeftovers, findLeftovers, markerName, markerValue } from "../../../../src/engines/process/leftovers.ts";
import { startProcess } from "../../../../src/engines/process/managed-process.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { isRunning } from "../../../support/processes.ts";
import { fakeEngine, scratchFolder, until } from "../../../support/scratch.ts";

const linux = {
  skip: process.platform === "linux" ? false : "another process's environment can be read on Linux alone",
};

/** Pids of an engine of a state folder and of the children that its flags ask for. */
async function engineOf(t: TestContext, stateDir: string, ...flags: readonly string[]): Promise<number[]> {
  let output = "";
  const engine = await startProcess({
    path: process.execPath,
    args: fakeEngine(...flags),
    environment: { [markerName]: markerValue(stateDir) },
    workingDir: await scratchFolder(t),
    onOutput: (text) => {
      output += text;
    },
  });
  cleanUp(t, () => engine.stop(0));
  const parts = 1 + flags.filter((flag) => flag.startsWith("--fork")).length;
  const ready = await until("all are ready", () => {
    const found = [...output.matchAll(/ready (\d+)$/gm)];
    return found.length === parts && found;
  });
  return ready.map((match) => Number(match[1]));
}

async function running(pids: readonly number[]): Promise<boolean[]> {
  return Promise.all(pids.map(isRunning));
}

describe("leftover engines", linux, () => {
  it("are ended with their children, those in other process groups too", async (t) => {
    const root = await scratchFolder(t);
    const mine = join(root, "mine");
    const pids = await engineOf(t, mine, "--ignore-term", "--fork", "--fork-apart");
    assert.equal(pids.length, 3);
    assert.deepEqual((await findLeftovers(mine)).sort(), pids.toSorted());
    assert.deepEqual((await endLeftovers(mine)).sort(), pids.toSorted());
    await until("they have ended", async () => !(await running(pids)).includes(true));
  });

  it("are found when their parent has ended long ago", async (t) => {
    const mine = join(await scratchFolder(t), "mine");
    const [parent = 0, ...children] = (await engineOf(t, mine, "--delay=100", "--fork-apart")).sort((a, b) => a - b);
    process.kill(parent, "SIGKILL");
    await until("the parent has ended", async () => !(await isRunning(parent)));
    assert.deepEqual(await running(children), [true]);
    assert.deepEqual(await endLeftovers(mine), children);
    // One that is ending has lost its environment before it is gone.
    await until("it has ended", async () => !(await running(children)).includes(true));
  });

  it("of another state folder are left alone, whatever it is called", async (t) => {
    const root = await scratchFolder(t);
    const other = await engineOf(t, join(root, "state-2"), "--fork");
    const mine = await engineOf(t, join(root, "state"));
    assert.deepEqual(await endLeftovers(join(root, "state")), mine);
    assert.deepEqual(await running(other), [true, true]);
    assert.deepEqual(await endLeftovers(join(root, "state-2", "deeper")), []);
    assert.deepEqual(await endLeftovers(root), []);
    assert.deepEqual(await running(other), [true, true]);
    assert.deepEqual((await endLeftovers(join(root, "state-2"))).sort(), other.toSorted());
  });

  it("are none where there are none", async (t) => {
    assert.deepEqual(await endLeftovers(await scratchFolder(t)), []);
  });

  it("carry a marker that tells nothing of the folder", () => {
    assert.match(markerValue("/home/person/state"), /^[0-9a-f]{24}$/);
    assert.notEqual(markerValue("/a"), markerValue("/b"));
  });
});
