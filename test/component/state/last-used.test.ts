// When models were last used: written seldom, kept over a restart, set aside where it is damaged.
import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openLastUsed } from "../../../src/state/last-used.ts";
import { scratchFolder, until } from "../../support/scratch.ts";

test("many uses make one write, the rest is written at the end", async (t) => {
  const stateDir = await scratchFolder(t);
  let clock = 1_000_000;
  const warnings: string[] = [];
  const open = (everyMs: number) =>
    openLastUsed({ stateDir, now: () => clock, warn: (message) => warnings.push(message), everyMs });
  const first = await open(3_600_000);
  await first.close();
  assert.deepEqual(await readdir(stateDir), [], "nothing used, nothing written");
  for (const id of ["a", "b", "a"]) {
    clock += 1000;
    first.note(id);
  }
  assert.deepEqual(await readdir(stateDir), []);
  await first.close();
  const second = await open(5);
  assert.deepEqual([...second.entries()].toSorted(), [
    ["a", 1_003_000],
    ["b", 1_002_000],
  ]);
  clock += 1000;
  second.note("c");
  const path = join(stateDir, "last-used.json");
  await until("written by itself", async () => (await readFile(path, "utf8")).includes('"c"'));
  await second.close();

  await writeFile(path, '{"models":{"a":"yesterday"}}');
  const third = await open(5);
  assert.deepEqual([third.entries().size, warnings.length], [0, 1]);
  assert.ok((await readdir(stateDir)).some((name) => name.startsWith("last-used.json.corrupt-")));
});
