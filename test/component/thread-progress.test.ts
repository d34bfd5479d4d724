// How far a process has computed whose main thread answers questions meanwhile: seen by its other threads.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { threadProgress } from "../../src/engines/computing.ts";
import { cleanUp } from "../support/clean-up.ts";
import { scratchFolder, until } from "../support/scratch.ts";

const program = `
const { pbkdf2 } = require("node:crypto");
const work = () => pbkdf2("a", "b", 20_000, 32, "sha256", work);
process.on("message", (wanted) => {
  if (wanted === "work") work();
  process.send("heard");
});
process.send("ready");
`;

test("threads that compute are a progress, a main thread that answers is none", {
  skip: process.platform !== "linux",
}, async (t) => {
  const file = join(await scratchFolder(t), "program.cjs");
  await writeFile(file, program);
  const child = fork(file);
  const gone = once(child, "exit");
  cleanUp(t, async () => {
    child.kill("SIGKILL");
    await gone;
  });
  await once(child, "message");
  const look = threadProgress(child.pid ?? null);
  const ask = async (wanted: string): Promise<void> => {
    const heard = once(child, "message");
    child.send(wanted);
    await heard;
  };
  // What it still does of its start passes.
  let before = await look();
  await until("it answers and computes nothing", async () => {
    for (let asked = 0; asked < 20; asked++) await ask("nothing");
    const after = await look();
    const isStill = after === before;
    before = after;
    return isStill;
  });
  assert.notEqual(before, null);
  await ask("work");
  await until("it computes", async () => (await look()) !== before);
  before = await look();
  await until("it still does", async () => (await look()) !== before);
});

test("of a process that is not there nothing is known", async () => {
  assert.equal(await threadProgress(null)(), null);
  assert.equal(await threadProgress(2 ** 30)(), null);
});
