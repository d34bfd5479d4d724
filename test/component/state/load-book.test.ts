// How loads ended: kept over a restart, set aside where it is damaged.
import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { LoadInputs } from "../../../src/plan/load-record.ts";
import { openLoadBook } from "../../../src/state/load-book.ts";
import { plainStateFiles } from "../../../src/state/state-folder.ts";
import { scratchFolder } from "../../support/scratch.ts";

const inputs = (size: string, files = "f"): LoadInputs => ({
  settings: new Map([["ctx-size", size]]),
  files,
  engine: "e",
});

test("settings that worked and failed are remembered, and a failure is forgiven once it is to be tried again", async (t) => {
  const stateDir = await scratchFolder(t);
  const warnings: string[] = [];
  const open = () => openLoadBook({ stateDir, warn: (message) => warnings.push(message), files: plainStateFiles });
  const first = await open();
  assert.equal(first.hasFallback("a", inputs("1")), false, "nothing has worked yet");
  first.failed("a", inputs("1"), "no");
  assert.equal(first.facts().records.size, 0);
  first.verified("a", inputs("1"));
  assert.equal(first.hasFallback("a", inputs("1")), false, "the same is no other");
  assert.equal(first.hasFallback("a", inputs("2", "g")), false, "other files may be the cause");
  assert.equal(first.hasFallback("a", inputs("2")), true);
  first.failed("a", inputs("2"), "no");
  assert.equal(first.hasFallback("a", inputs("2")), false, "not twice");
  first.verified("a", inputs("1"));
  await first.close();

  const second = await open();
  assert.deepEqual(
    [...second.facts().records],
    [["a", { verified: inputs("1"), failed: { ...inputs("2"), why: "no" } }]],
  );
  second.forgive((id) => id === "b");
  assert.ok(second.facts().records.get("a")?.failed);
  second.forgive((id) => id === "a");
  assert.equal(second.facts().records.get("a")?.failed, null);
  await second.close();

  await writeFile(join(stateDir, "loads.json"), '{"models":{"a":{}}}');
  assert.deepEqual([(await open()).facts().records.size, warnings.length], [0, 1]);
  assert.ok((await readdir(stateDir)).some((name) => name.startsWith("loads.json.corrupt-")));
});
