// What calls change, written into gateway.yaml beside its author's own saves.
import assert from "node:assert/strict";
import { chmod, lstat, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { systemCode } from "../../../src/core/errors.ts";
import { replaceFile, restoreReplaced } from "../../../src/desired/replace-file.ts";
import { patch, yaml } from "../../support/documents.ts";
import { scratchFolder, until } from "../../support/scratch.ts";
import { naming, type Sourcing, startSourcing } from "../../support/sourcing.ts";

const a = "acme/a:Q8_0";
const commented = `# the team's\nversion: 1\nmodels:\n  - ${a}   # small\n`;

function sourced(t: TestContext, text: string, root?: string): Promise<Sourcing> {
  return startSourcing(t, { text, writesBack: true, ...(root === undefined ? {} : { root }) });
}

const read = (path: string): Promise<string> => readFile(path, "utf8");

/** For a moment of each replacement the file has no name. */
const polled = (path: string): Promise<string> =>
  read(path).catch((error: unknown) => {
    if (systemCode(error) === "ENOENT") return "";
    throw error;
  });

function becomesText(path: string, text: string): Promise<unknown> {
  return until(`${path} is written`, async () => (await polled(path)) === text);
}

function comesToHold(path: string, ...parts: readonly string[]): Promise<unknown> {
  return until(`${path} has ${parts.join(", ")}`, async () => {
    const text = await polled(path);
    return parts.every((part) => text.includes(part));
  });
}

describe("a change of a call", () => {
  it("is written into the file, its comments kept, and is no save of it", async (t) => {
    const { path, store, source, told } = await sourced(t, commented);
    await store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    await becomesText(path, `# the team's\nversion: 1\nmodels:\n  - id: ${a} # small\n    ctxSize: 512\n`);
    await source.refresh();
    assert.deepEqual([store.current().generation, store.differencesFromFile()], [2, []]);
    assert.deepEqual(
      told.filter((line) => !line.startsWith("Applied")),
      [],
    );
    // A restart takes the text for what it is.
    await source.close();
    const again = await sourced(t, await read(path), join(path, ".."));
    assert.equal(again.store.current().generation, 2);
  });

  it("that was made while the gateway was down is written at its next start", async (t) => {
    const first = await startSourcing(t, { text: commented });
    await first.store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    await first.source.close();
    assert.equal(await read(first.path), commented);
    const second = await startSourcing(t, { root: first.root, writesBack: true });
    await comesToHold(second.path, "ctxSize: 512");
  });

  it("keeps the file's mode, and a link a link", async (t) => {
    const root = await scratchFolder(t);
    await mkdir(join(root, "repo"));
    const target = join(root, "repo", "machine.yaml");
    await writeFile(target, commented);
    await chmod(target, 0o640);
    await symlink(join("repo", "machine.yaml"), join(root, "gateway.yaml"));
    const { path, store } = await startSourcing(t, { root, writesBack: true });
    await store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    await comesToHold(target, "ctxSize: 512");
    assert.ok((await lstat(path)).isSymbolicLink());
    assert.equal((await stat(target)).mode & 0o777, 0o640);
    await until("nothing else is there", async () => (await readdir(join(root, "repo"))).join() === "machine.yaml");
  });

  it("waits for a broken file to be repaired, and is not lost", async (t) => {
    const { path, store, reports } = await sourced(t, commented);
    await writeFile(path, "version: [");
    await reports("ParseError");
    await store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    await writeFile(path, `${commented}prune: true\n`);
    await comesToHold(path, "ctxSize: 512", "prune: true");
    assert.deepEqual(store.current().tree, { version: 1, models: { [a]: { ctxSize: 512 } }, prune: true });
  });

  it("is told where it cannot be written, and written once it can", async (t) => {
    const root = await scratchFolder(t);
    await mkdir(join(root, "config"));
    const path = join(root, "config", "gateway.yaml");
    const { store, reports } = await startSourcing(t, { root, path, text: commented, writesBack: true, pollMs: 20 });
    // In the way of what is written beside the file.
    await mkdir(`${path}.replaced/full`, { recursive: true });
    await store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    const status = await reports("WriteBackFailed");
    assert.match(status.message, /could not be written into it: (EISDIR|ENOTEMPTY|EEXIST|ENOTDIR)/);
    assert.deepEqual([status.valid, await read(path)], [true, commented]);
    await rm(`${path}.replaced`, { recursive: true });
    await reports("Applied");
    assert.match(await read(path), /ctxSize: 512/);
  });

  it("of an applied text goes into the watched file, and the text stays the applied one", async (t) => {
    const { path, store, source } = await sourced(t, commented);
    const file = { tree: yaml(naming("b")), sha256: "ab12", revision: "3f2a9c1" };
    await store.change({ kind: "apply", file }, "http:PUT /api/desired");
    await comesToHold(path, "acme/b");
    await source.refresh();
    assert.deepEqual([store.current().applied?.sha256, store.current().applied?.revision], ["ab12", "3f2a9c1"]);
    assert.deepEqual(store.current().tree, file.tree);
    assert.match(await read(path), /^# the team's\n/);
  });
});

describe("a save at the same time", () => {
  it("from a text before the last write undoes nothing; both end in the file", async (t) => {
    const { path, store } = await sourced(t, commented);
    await store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    await comesToHold(path, "ctxSize: 512");
    // An editor that has the first text open.
    await writeFile(path, `${commented}prune: true # mine\n`);
    await comesToHold(path, "ctxSize: 512", "prune: true # mine");
    assert.deepEqual(store.current().tree, { version: 1, models: { [a]: { ctxSize: 512 } }, prune: true });
  });

  it("that takes out what was written a while ago takes it out of the document", async (t) => {
    let clock = 0;
    const before = `${commented}prune: true\n`;
    const { path, store, source } = await startSourcing(t, { text: before, writesBack: true, now: () => clock });
    await store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    await store.change({ kind: "patch", patch: { suspend: true } }, "api");
    await comesToHold(path, "suspend: true");
    // The file is there before its time is noted.
    await source.refresh();
    const text = await read(path);
    clock += 11_000;
    await writeFile(path, text.replace("suspend: true\n", "").replace("prune: true", "prune: false"));
    await until("it is out", () => store.current().tree["suspend"] === undefined);
    assert.deepEqual(store.current().tree, { version: 1, models: { [a]: { ctxSize: 512 } }, prune: false });
  });

  for (const [how, save] of [
    ["in place", (path: string, text: string) => writeFile(path, text)],
    [
      "by a rename",
      async (path: string, text: string) => {
        await writeFile(`${path}~`, text);
        await rename(`${path}~`, path);
      },
    ],
  ] as const)
    it(`is not lost, ${how}, whenever it comes: forty saves among forty changes`, async (t) => {
      const { path, store, source } = await sourced(t, commented);
      const calls = (async () => {
        for (let index = 0; index < 40; index++) {
          await store.change(patch({ [`acme/call${index}:Q8_0`]: {} }), "api");
          await new Promise((resolve) => setTimeout(resolve, (index * 7) % 11));
        }
      })();
      // A person's tool: it reads what there is, and saves that with one line more.
      for (let index = 0; index < 40; index++) {
        const text = await polled(path);
        if (!text.includes("models:")) {
          index--;
          continue;
        }
        await save(path, `${text}  - acme/hand${index}:Q8_0 # mine\n`);
        // The next save is made from what became of this one.
        await until(
          `${index} is in the document`,
          () => `acme/hand${index}:Q8_0` in (store.current().tree["models"] as object),
        );
      }
      await calls;
      const wanted = Array.from({ length: 40 }, (_, index) => [
        `acme/call${index}:Q8_0`,
        `acme/hand${index}:Q8_0`,
      ]).flat();
      const missing = (ids: readonly string[]): string[] => wanted.filter((id) => !ids.includes(id));
      assert.deepEqual(missing(Object.keys(store.current().tree["models"] as object)), []);
      await until("the file has it all", async () => {
        await source.refresh();
        return missing(Object.keys((yaml(await polled(path))["models"] ?? {}) as object)).length === 0;
      });
      assert.equal((await read(path)).match(/# mine/g)?.length, 40);
      assert.deepEqual(await readdir(join(path, "..")), ["gateway.yaml", "state"]);
    });
});

describe("the replacement of a file", () => {
  it("leaves a file alone that does not hold what was seen", async (t) => {
    const path = join(await scratchFolder(t), "gateway.yaml");
    await writeFile(path, "theirs");
    assert.equal(await replaceFile(path, Buffer.from("seen"), "ours"), false);
    assert.equal(await read(path), "theirs");
    assert.equal(await replaceFile(path, Buffer.from("theirs"), "ours"), true);
    assert.equal(await read(path), "ours");
    assert.deepEqual(await readdir(join(path, "..")), ["gateway.yaml"]);
  });

  it("that a crash broke off is undone at the next start, also behind a link", async (t) => {
    const root = await scratchFolder(t);
    const path = join(root, "gateway.yaml");
    await writeFile(`${path}.replaced`, "old");
    await restoreReplaced(path);
    assert.equal(await read(path), "old");
    await symlink("gateway.yaml", join(root, "link.yaml"));
    await rename(path, `${path}.replaced`);
    await restoreReplaced(join(root, "link.yaml"));
    assert.equal(await read(path), "old");
    // A file that is there is the newer one.
    await writeFile(`${path}.replaced`, "older");
    await restoreReplaced(path);
    assert.equal(await read(path), "old");
  });
});
