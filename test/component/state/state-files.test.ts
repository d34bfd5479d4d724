// Files of the state folder: whole or not at all, and nothing lost of one that cannot be understood.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openInventory } from "../../../src/cache/inventory/inventory.ts";
import { presetHandlers } from "../../../src/execute/preset-actions.ts";
import type { InventoryEntry } from "../../../src/plan/observed.ts";
import { readIfPresent, writeAtomic, writeState } from "../../../src/state/atomic-file.ts";
import { plainStateFiles, readJsonState } from "../../../src/state/state-folder.ts";
import { refusal, scratchFolder } from "../../support/scratch.ts";

const entry: InventoryEntry = {
  id: "acme/demo:Q8_0",
  repo: "acme/demo",
  tag: "Q8_0",
  revision: "main",
  commit: "a".repeat(40),
  files: [{ path: "demo-Q8_0.gguf", blob: "b".repeat(64), size: 5 }],
  addedAt: "2026-01-01T00:00:00.000Z",
  keep: false,
};

const ignore = (): void => undefined;

describe("writing a state file", () => {
  it("shows a reader the old text or the new one, never a part", async (t) => {
    const path = join(await scratchFolder(t), "file");
    const texts = ["a".repeat(300_000), "b".repeat(200_000)];
    await writeAtomic(path, texts[0] ?? "");
    let writing = true;
    const seen = new Set<string>();
    const reader = (async () => {
      while (writing) seen.add(await readFile(path, "utf8"));
    })();
    for (let round = 0; round < 20; round++) await writeAtomic(path, texts[round % 2] ?? "");
    writing = false;
    await reader;
    assert.deepEqual(
      [...seen].filter((text) => !texts.includes(text)),
      [],
    );
  });

  it("gives a new file the mode that was asked for", async (t) => {
    const folder = await scratchFolder(t);
    await writeAtomic(join(folder, "open"), "1");
    await writeAtomic(join(folder, "secret"), "1", { mode: 0o600 });
    assert.equal((await stat(join(folder, "secret"))).mode & 0o777, 0o600);
    await chmod(join(folder, "secret"), 0o644);
    await writeAtomic(join(folder, "secret"), "2", { mode: 0o600 });
    assert.equal((await stat(join(folder, "secret"))).mode & 0o777, 0o600);
  });

  it("says what is wrong and leaves nothing behind where it cannot write", async (t) => {
    const folder = await scratchFolder(t);
    const taken = join(folder, "taken");
    await mkdir(join(taken, "inside"), { recursive: true });
    const error = await refusal(writeState(taken, "text"));
    assert.equal(error.code, "state_unwritable");
    assert.match(error.message, /taken cannot be written \(EISDIR\)/);
    assert.deepEqual(await readdir(folder), ["taken"]);
    await writeFile(join(folder, "plain"), "");
    assert.match((await refusal(writeState(join(folder, "plain", "file"), "text"))).message, /ENOTDIR/);
    assert.match((await refusal(writeState(join(folder, "nowhere", "file"), "text"))).message, /ENOENT/);
  });

  it("tells a missing file from an unreadable one", async (t) => {
    const folder = await scratchFolder(t);
    assert.equal(await readIfPresent(join(folder, "none")), null);
    await assert.rejects(readIfPresent(folder), { code: "EISDIR" });
    await writeFile(join(folder, "plain"), "");
    const error = await refusal(
      readJsonState(join(folder, "plain", "below"), (value) => value, { files: plainStateFiles, warn: ignore }),
    );
    assert.equal(error.code, "state_unwritable");
    assert.match(error.message, /cannot be read \(ENOTDIR\)/);
  });
});

describe("the preset file", () => {
  it("is written, or the failure says why", async (t) => {
    const folder = await scratchFolder(t);
    const action = {
      kind: "preset.write",
      key: "preset",
      text: "[*]\n",
      replaces: "",
      reason: "PresetAbsent",
      message: "",
      disrupts: [],
    } as const;
    const run = { signal: new AbortController().signal, report: ignore };
    await presetHandlers(join(folder, "p.ini"), writeState, ignore)["preset.write"](action, run);
    assert.equal(await readFile(join(folder, "p.ini"), "utf8"), "[*]\n");
    await rename(join(folder, "p.ini"), join(folder, "plain"));
    const error = await refusal(
      presetHandlers(join(folder, "plain", "p.ini"), writeState, ignore)["preset.write"](action, run),
    );
    assert.equal(error.code, "preset_unwritable");
    assert.match(error.message, /ENOTDIR/);
  });
});

describe("the preset file under an editor that saves in place", () => {
  it("is not replaced by what half of it would have become", async (t) => {
    const path = join(await scratchFolder(t), "p.ini");
    const base = { kind: "preset.write", key: "preset", reason: "", message: "", disrupts: [] } as const;
    const run = { signal: new AbortController().signal, report: ignore };
    const disabled: string[] = [];
    const write = presetHandlers(path, writeState, (lines) => disabled.push(...lines))["preset.write"];
    for (const half of ["", "; mine\n"]) {
      await writeFile(path, half);
      const writing = write({ ...base, text: "[*]\n", replaces: half }, run);
      await writeFile(path, "; mine\n[*]\nparallel = 1\n");
      await writing;
      assert.equal(await readFile(path, "utf8"), "; mine\n[*]\nparallel = 1\n");
    }
    await write({ ...base, text: "[*]\n", replaces: "; mine\n[*]\nparallel = 1\n" }, run);
    assert.equal(await readFile(path, "utf8"), "[*]\n");
    assert.deepEqual(disabled, []);
    await write({ ...base, text: "[*]\n; rubbish\n", replaces: "[*]\n" }, run);
    await writeFile(path, "[*]\n; rubbish\n  no-such = 1\n");
    await write({ ...base, text: "[*]\n; rubbish\n; no-such = 1\n", replaces: "[*]\n; rubbish\n  no-such = 1\n" }, run);
    assert.deepEqual(disabled, ["no-such = 1"]);
  });
});

describe("the inventory", () => {
  it("survives a restart and takes concurrent changes one after the other", async (t) => {
    const folder = await scratchFolder(t);
    const inventory = await openInventory(folder, ignore);
    const ids = Array.from({ length: 20 }, (_, index) => `acme/m${index}:Q8_0`);
    await Promise.all(ids.map((id) => inventory.put({ ...entry, id })));
    await Promise.all([
      inventory.remove("acme/m3:Q8_0"),
      inventory.put({ ...entry, id: "acme/m4:Q8_0", commit: "c".repeat(40) }),
    ]);
    const again = await openInventory(folder, ignore);
    assert.deepEqual(
      again
        .entries()
        .map(({ id }) => id)
        .sort(),
      ids.filter((id) => id !== "acme/m3:Q8_0").sort(),
    );
    assert.equal(again.get("acme/m4:Q8_0")?.commit, "c".repeat(40));
    assert.deepEqual(again.entries(), inventory.entries());
  });

  it("remembers `keep` after the model has left the document, and forgets it when the document says so", async (t) => {
    const folder = await scratchFolder(t);
    const inventory = await openInventory(folder, ignore);
    await inventory.put(entry);
    await inventory.noteKept(new Set([entry.id]), new Set());
    await inventory.noteKept(new Set(), new Set());
    assert.equal((await openInventory(folder, ignore)).get(entry.id)?.keep, true);
    await inventory.noteKept(new Set(), new Set([entry.id]));
    assert.equal((await openInventory(folder, ignore)).get(entry.id)?.keep, false);
  });

  it("remembers since when the document does not name a model, and forgets it when it names it again", async (t) => {
    const folder = await scratchFolder(t);
    const inventory = await openInventory(folder, ignore);
    await inventory.put(entry);
    const leftAt = async (): Promise<string | undefined> => (await openInventory(folder, ignore)).get(entry.id)?.leftAt;
    await inventory.noteLeft(new Set(), 5_000);
    await inventory.noteLeft(new Set(), 9_000);
    assert.equal(await leftAt(), new Date(5_000).toISOString());
    // The clock was set back.
    await inventory.noteLeft(new Set(), 4_000);
    assert.equal(await leftAt(), new Date(4_000).toISOString());
    await inventory.noteLeft(new Set([entry.id]), 9_000);
    assert.equal(await leftAt(), undefined);
    await inventory.noteLeft(new Set(), 10_000);
    await inventory.put(entry);
    assert.equal(await leftAt(), undefined);
  });

  it("writes nothing where nothing changed", async (t) => {
    const folder = await scratchFolder(t);
    const inventory = await openInventory(folder, ignore);
    await inventory.noteKept(new Set(["acme/other:Q8_0"]), new Set());
    assert.deepEqual(await readdir(folder), []);
  });

  for (const [what, text] of [
    ["half a file", `{"models": [{"id": "acme/de`],
    ["another shape", `{"models": {"a": 1}}`],
    ["an entry without files", JSON.stringify({ models: [{ ...entry, files: undefined }] })],
    ["an entry without a repository", JSON.stringify({ models: [{ ...entry, repo: undefined }] })],
    ["nothing", ""],
  ] as const) {
    it(`sets ${what} aside, whole, and goes on`, async (t) => {
      const folder = await scratchFolder(t);
      await writeFile(join(folder, "inventory.json"), text);
      const warnings: object[] = [];
      const inventory = await openInventory(folder, (_message, fields) => void warnings.push(fields));
      assert.deepEqual(inventory.entries(), []);
      await inventory.put(entry);
      const [aside] = (await readdir(folder)).filter((name) => name.startsWith("inventory.json.corrupt-"));
      assert.ok(aside);
      assert.equal(await readFile(join(folder, aside), "utf8"), text);
      assert.deepEqual(warnings, [{ path: join(folder, aside) }]);
      assert.deepEqual((await openInventory(folder, ignore)).entries(), [entry]);
    });
  }

  it("keeps what it knows where it cannot be written", async (t) => {
    const folder = await scratchFolder(t);
    const state = join(folder, "state");
    await mkdir(state);
    const inventory = await openInventory(state, ignore);
    await inventory.put(entry);
    await rename(state, `${state}.away`);
    await writeFile(state, "");
    assert.equal((await refusal(inventory.remove(entry.id))).code, "state_unwritable");
    assert.deepEqual(inventory.entries(), [entry]);
  });
});
