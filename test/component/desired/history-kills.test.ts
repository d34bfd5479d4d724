// The history of a process that is killed in the middle of its changes: no confirmed change is lost, and every document that it has is right.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openHistory } from "../../../src/desired/history/book.ts";
import { treeOf } from "../../../src/desired/history/entries.ts";
import { openDesiredStore } from "../../../src/desired/store.ts";
import { removeTemporaries } from "../../../src/state/atomic-file.ts";
import { scratchFolder } from "../../support/scratch.ts";

const child = fileURLToPath(new URL("../../support/history-child.js", import.meta.url));

/** Resolves with the last generation that it has confirmed. */
async function runUntilKilled(stateDir: string, afterMs: number): Promise<number> {
  const process_ = spawn(process.execPath, [child, stateDir], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => process_.once("close", resolve));
  let text = "";
  await new Promise<void>((resolve, reject) => {
    process_.stdout.on("data", (piece: Buffer) => {
      text += piece.toString();
      resolve();
    });
    process_.once("close", () => reject(new Error("it ended by itself")));
  });
  await delay(afterMs);
  process_.kill("SIGKILL");
  await ended;
  return Number(text.slice(0, text.lastIndexOf("\n")).split("\n").at(-1));
}

test("a kill at any moment leaves a history whose documents are right", async (t) => {
  const stateDir = join(await scratchFolder(t), "state");
  await mkdir(stateDir);
  let gaps = 0;
  for (let kill = 0; kill < 10; kill++) {
    const confirmed = await runUntilKilled(stateDir, (kill * 37) % 250);
    await removeTemporaries(stateDir);
    const told: string[] = [];
    const options = { stateDir, now: Date.now, warn: (message: string) => void told.push(message) };
    const history = await openHistory(options);
    const store = await openDesiredStore({ ...options, generationOf: history.generationOf });
    history.follow(store);
    await history.close();
    const { generation, tree } = store.current();
    assert.ok(generation >= confirmed, `${generation} < ${confirmed}`);
    assert.deepEqual(told, []);
    const now = history.current();
    assert.deepEqual([now.head.generation, now.head.tree], [generation, tree]);
    for (const entry of now.entries) {
      assert.deepEqual(treeOf(now, entry.generation), { version: 1, context: { default: entry.generation } });
      if (entry.by === "unknown") gaps++;
    }
    // Killed before its first entry was on the disk, it begins with the document that there is.
    assert.equal(now.entries.at(-1)?.generation ?? now.base, generation);
  }
  t.diagnostic(`${gaps} gaps were seen and closed`);
});
