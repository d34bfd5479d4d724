// What gateway.yaml's content does to the document: valid, broken, gone, unreadable, and edited while nobody looked.
import assert from "node:assert/strict";
import { mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { scratchFolder, until } from "../../support/scratch.ts";
import { naming, startSourcing } from "../../support/sourcing.ts";

describe("the content of gateway.yaml", { concurrency: true }, () => {
  it("is applied at the start, and its edits after it", async (t) => {
    const { path, store, source, becomes, names } = await startSourcing(t, { text: naming("a", "b") });
    assert.deepEqual(names(), ["a", "b"]);
    assert.deepEqual(
      { ...source.status(), path: "" },
      { path: "", valid: true, reason: "Applied", message: `${path} is applied`, problems: [] },
    );
    await writeFile(path, naming("a", "c"));
    await becomes("a", "c");
    assert.equal(store.current().generation, 2);
  });

  it("makes no generation where only comments and order of keys change", async (t) => {
    const { path, store, source } = await startSourcing(t, {
      text: "version: 1\nprune: true\nmodels: [acme/a:Q8_0]\n",
    });
    await writeFile(path, "# a comment\nmodels:\n  - id: acme/a:Q8_0 # another\nprune: true\nversion: 1\n");
    await source.check();
    assert.equal(store.current().generation, 1);
    assert.equal(source.status().reason, "Applied");
  });

  for (const [what, text, where] of [
    ["broken YAML", "version: 1\nmodels:\n  - [acme/a:Q8_0\nprune: true\n", "4:1"],
    ["an unknown key", "version: 1\nmodels:\n  - id: acme/a:Q8_0\n    ctxsize: 4\n", "4:5"],
    ["a wrong type", "version: 1\nmodels:\n  - id: acme/a:Q8_0\n    ctxSize: many\n", "4:14"],
    ["a duplicate", "version: 1\nmodels:\n  - acme/a:Q8_0\n  - acme/A:q8_0\n", "4:5"],
    ["nothing at all", "", "1:1"],
    ["comments alone", "# nothing\n", "1:1"],
    ["binary rubbish", "\u0000\u0001\u0002", "1:1"],
  ] as const) {
    it(`keeps the last document and names line and column: ${what}`, async (t) => {
      const { path, store, source, told, reports } = await startSourcing(t, { text: naming("a", "b") });
      const before = store.current();
      await writeFile(path, text);
      const status = await reports("ParseError");
      assert.equal(status.valid, false);
      assert.ok(status.message.startsWith(`${path}:${where}: `), status.message);
      assert.match(status.message, /the last good document stays$/);
      assert.deepEqual(store.current(), before);
      assert.equal(told.length, 2);
      await writeFile(path, naming("a", "z"));
      assert.equal((await reports("Applied")).valid, true);
      assert.deepEqual(source.status().problems, []);
    });
  }

  it("tells all problems at once", async (t) => {
    const { source } = await startSourcing(t, { text: "version: 2\nprune: 7\nmodels: [x]\n" });
    assert.deepEqual(
      source.status().problems.map(({ line, path }) => `${line} ${path}`),
      ["1 version", "2 prune", "3 models[0]"],
    );
    assert.match(source.status().message, /\(and 2 more\)/);
  });

  it("keeps the last document where it is too large, and tells a few of many problems", async (t) => {
    const { path, source, reports, names } = await startSourcing(t, { text: naming("a") });
    await writeFile(path, `${naming("b")}${"# padding\n".repeat(200_000)}`);
    assert.equal(
      (await reports("ParseError")).message,
      `${path}:1:1: the document exceeds the limit of 262144 bytes; the last good document stays`,
    );
    await writeFile(path, `version: 1\n${Array.from({ length: 1_500 }, (_, n) => `key${n}: 1\n`).join("")}`);
    await until("the keys are reported", () => source.status().problems.length === 20);
    assert.match(source.status().message, /:2:1: key0: unknown key \(known: .*\) \(and 1499 more\);/);
    await writeFile(path, naming(...Array.from({ length: 501 }, (_, n) => `m${n}`)));
    await until("the models are reported", () => /:3:3: models: 501 models exceed/.test(source.status().message));
    assert.deepEqual(names(), ["a"]);
  });

  it("of many models is applied as one of few", async (t) => {
    const models = Array.from({ length: 500 }, (_, n) => `m${n}`);
    const { source, names } = await startSourcing(t, { text: naming(...models) });
    assert.equal(source.status().reason, "Applied");
    assert.deepEqual(names(), models);
  });

  it("that is back to what it was counts as applied, without a new generation", async (t) => {
    const { path, store, reports } = await startSourcing(t, { text: naming("a") });
    await writeFile(path, "version: [");
    await reports("ParseError");
    await writeFile(path, naming("a"));
    await reports("Applied");
    assert.equal(store.current().generation, 1);
  });

  it("that is missing changes nothing, at the start and later", async (t) => {
    const { path, source, reports, becomes, names } = await startSourcing(t, { text: null });
    assert.equal(source.status().reason, "FileMissing");
    await writeFile(path, naming("a"));
    await becomes("a");
    await rm(path);
    await reports("FileMissing");
    assert.deepEqual(names(), ["a"]);
    await writeFile(path, naming("a"));
    await reports("Applied");
  });

  it("that cannot be read changes nothing: a folder in its place, a loop of links", async (t) => {
    // The watcher loses a link to itself out of sight: there the poll goes on.
    const { path, source, reports, names } = await startSourcing(t, { text: naming("a"), pollMs: 50 });
    await rm(path);
    await mkdir(path);
    assert.match((await reports("FileUnreadable")).message, /EISDIR/);
    await rm(path, { recursive: true });
    await symlink("gateway.yaml", path);
    await until("a loop of links is reported", () => source.status().message.includes("ELOOP"));
    assert.deepEqual(names(), ["a"]);
    await rm(path);
    await writeFile(path, naming("b"));
    await reports("Applied");
    assert.deepEqual(names(), ["b"]);
  });
});

describe("a refresh", () => {
  it("applies what was saved before it, although nobody has told of it yet", async (t) => {
    const { path, source, names } = await startSourcing(t, { text: naming("a") });
    await source.refresh();
    for (const name of ["b", "c", "d"]) {
      await writeFile(path, naming(name));
      await source.refresh();
      assert.deepEqual(names(), [name]);
    }
  });

  it("takes no half of a save for the whole", async (t) => {
    const { path, source, documents } = await startSourcing(t, { text: naming("a", "b") });
    await writeFile(path, naming("a"));
    const refreshed = source.refresh();
    await writeFile(path, naming("a", "b", "c"));
    await refreshed;
    await source.refresh();
    assert.deepEqual(documents, ["a b", "a b c"]);
  });

  it("ends where the file is wrong, missing, or cannot be stored, and with the gateway", async (t) => {
    const { root, path, source } = await startSourcing(t, { text: naming("a") });
    await writeFile(path, "version: [");
    await source.refresh();
    assert.equal(source.status().reason, "ParseError");
    await rm(path);
    await source.refresh();
    assert.equal(source.status().reason, "FileMissing");
    await rename(join(root, "state"), join(root, "away"));
    await writeFile(join(root, "state"), "");
    await writeFile(path, naming("b"));
    await source.refresh();
    assert.equal(source.status().reason, "StateUnwritable");
    const last = source.refresh();
    await source.close();
    await last;
    await source.refresh();
  });
});

describe("three writers of time", () => {
  it("applies at the start what was edited while the gateway was down, and no more", async (t) => {
    const root = await scratchFolder(t);
    const first = await startSourcing(t, { root, text: naming("a", "b") });
    await first.store.change(
      { kind: "patch", patch: { models: { "acme/api:Q8_0": {}, "acme/a:Q8_0": { ctxSize: 2048 } } } },
      "api",
    );
    await first.source.close();
    await writeFile(first.path, naming("a", "c"));
    const second = await startSourcing(t, { root });
    assert.deepEqual(second.names().sort(), ["a", "api", "c"]);
    assert.equal(second.store.current().document.models.find(({ id }) => id === "acme/a:Q8_0")?.ctxSize, 2048);
    await second.source.close();
    const third = await startSourcing(t, { root });
    assert.deepEqual(third.store.current(), second.store.current());
  });

  it("keeps the document of before where the file was broken or taken away meanwhile", async (t) => {
    const root = await scratchFolder(t);
    const first = await startSourcing(t, { root, text: naming("a", "b") });
    await first.source.close();
    await writeFile(first.path, "version: [");
    const second = await startSourcing(t, { root });
    assert.deepEqual([second.names(), second.source.status().reason], [["a", "b"], "ParseError"]);
    await second.source.close();
    await rm(first.path);
    const third = await startSourcing(t, { root });
    assert.deepEqual([third.names(), third.source.status().reason], [["a", "b"], "FileMissing"]);
  });
});

describe("a state folder that cannot be written", () => {
  it("is reported once, keeps the document, and is tried again by itself", async (t) => {
    const { root, path, told, reports, becomes, names } = await startSourcing(t, { text: naming("a"), pollMs: 20 });
    const state = join(root, "state");
    await rename(state, `${state}.away`);
    await writeFile(state, "");
    await writeFile(path, naming("b"));
    const status = await reports("StateUnwritable");
    assert.match(status.message, /^the document could not be stored: .*desired\.json cannot be written \(ENOTDIR\)/);
    assert.deepEqual(names(), ["a"]);
    // Several polls later it is still told once.
    let polls = 0;
    await until("some polls", () => polls++ > 40);
    assert.equal(told.filter((line) => line.startsWith("StateUnwritable")).length, 1);
    await rm(state);
    await rename(`${state}.away`, state);
    await becomes("b");
    await reports("Applied");
    const { tree } = JSON.parse(await readFile(join(state, "last-applied.json"), "utf8")) as { tree: object };
    assert.deepEqual(tree, { version: 1, models: { "acme/b:Q8_0": {} } });
  });
});
