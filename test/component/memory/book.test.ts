// What models take is kept over a restart, whole or not at all.
import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openMemoryBook } from "../../../src/memory/book.ts";
import { plainStateFiles } from "../../../src/state/state-folder.ts";
import { scratchFolder } from "../../support/scratch.ts";

test("what is noted is there after a restart, by its key; a damaged file is set aside", async (t) => {
  const stateDir = await scratchFolder(t);
  const warnings: string[] = [];
  const open = () => openMemoryBook({ stateDir, files: plainStateFiles, warn: (message) => warnings.push(message) });
  const estimate = new Map([["Host", { model: 3, context: 2, compute: 1 }]]);
  const measured = new Map([
    ["Host", 5],
    ["CUDA0", 7],
  ]);

  const first = await open();
  await first.close();
  assert.deepEqual(await readdir(stateDir), [], "nothing is known, nothing is written");
  first.note("a", { estimate });
  first.note("b", { measured });
  first.note("a", { measured });
  await first.close();

  const second = await open();
  assert.deepEqual(second.get("a"), { estimate, measured });
  assert.deepEqual(second.get("b"), { estimate: null, measured });
  assert.deepEqual(second.get("c"), { estimate: null, measured: null });

  await writeFile(join(stateDir, "memory.json"), '{"models":{"a":{"estimate":{"Host":[1]}}}}');
  const third = await open();
  assert.deepEqual(third.get("a"), { estimate: null, measured: null });
  assert.deepEqual(warnings, ["unreadable state file set aside"]);
});
