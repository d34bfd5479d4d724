// How gateway.yaml gets written by editors, orchestrators and slow programs, on the real watcher.
import assert from "node:assert/strict";
import { appendFile, mkdir, open, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { mountConfigMap } from "../../support/config-map.ts";
import { scratchFolder, until } from "../../support/scratch.ts";
import { naming, startSourcing } from "../../support/sourcing.ts";

/** A writer's pace, not a wait for anything. */
function pace(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

describe("watching gateway.yaml", () => {
  it("sees an editor that writes beside the file and renames over it, again and again", async (t) => {
    const { path, becomes } = await startSourcing(t, { text: naming("a") });
    for (const name of ["b", "c", "d"]) {
      await writeFile(`${path}~`, naming(name));
      await rename(`${path}~`, path);
      await becomes(name);
    }
  });

  it("sees an editor that moves the file away as a backup and writes a new one", async (t) => {
    const { path, becomes } = await startSourcing(t, { text: naming("a") });
    for (const name of ["b", "c"]) {
      await rename(path, `${path}~`);
      await writeFile(path, naming(name));
      await becomes(name);
    }
  });

  it("sees a file that is deleted and made again", async (t) => {
    const { path, becomes, reports } = await startSourcing(t, { text: naming("a") });
    for (const name of ["b", "c"]) {
      await rm(path);
      await reports("FileMissing");
      await writeFile(path, naming(name));
      await becomes(name);
    }
  });

  it("sees a mounted folder's swap of links, as a ConfigMap is updated", async (t) => {
    const root = await scratchFolder(t);
    const mounted = await mountConfigMap(join(root, "mounted"), { "gateway.yaml": naming("a") });
    const path = join(root, "mounted", "gateway.yaml");
    const { becomes, names } = await startSourcing(t, { root, path });
    assert.deepEqual(names(), ["a"]);
    for (const name of ["b", "c"]) {
      await mounted.update({ "gateway.yaml": naming(name) });
      await becomes(name);
    }
  });

  it("does not apply what is half written, though it is a valid document that wants less", async (t) => {
    const { path, documents, told, becomes } = await startSourcing(t, { text: naming("a", "b", "c") });
    const file = await open(path, "w");
    for (const line of naming("b", "c", "d").split(/(?<=\n)/)) {
      await file.write(line);
      await pace(15);
    }
    await file.close();
    await becomes("b", "c", "d");
    assert.deepEqual(documents, ["a b c", "b c d"]);
    assert.deepEqual(
      told.filter((line) => !line.startsWith("Applied")),
      [],
    );
  });

  it("does not apply half of a save that is longer than the text before it, and keeps what the API has set", async (t) => {
    const { path, store, documents } = await startSourcing(t, { text: naming("a", "b") });
    await store.change({ kind: "patch", patch: { models: { "acme/b:Q8_0": { ctxSize: 4096 } } } }, "http");
    const file = await open(path, "w");
    for (const part of naming("c", "d", "e", "a", "b").split(/(?<=e:Q8_0\n)/)) {
      await file.write(part);
      await pace(35);
    }
    await file.close();
    await until("all models are in the document", () => store.current().document.models.length === 5);
    assert.deepEqual(documents, ["a b", "a b", "a b c d e"]);
    assert.equal(store.current().document.models[1]?.ctxSize, 4096);
  });

  it("ends many quick edits in the last one", async (t) => {
    // As the product polls: the watcher drops an event that follows another too soon, and a busy machine makes the last one such.
    const { path, becomes, store } = await startSourcing(t, { text: naming("a"), pollMs: 2_000 });
    for (let edit = 1; edit <= 60; edit++) await writeFile(path, naming(`m${edit}`));
    await becomes("m60");
    assert.ok(store.current().generation < 30, `${store.current().generation} generations`);
  });

  it("is not held up by a busy neighbour in the same folder", async (t) => {
    const { root, path, becomes } = await startSourcing(t, { text: naming("a") });
    let busy = true;
    const neighbour = (async () => {
      while (busy) {
        await appendFile(join(root, "some.log"), "line\n");
        await pace(15);
      }
    })();
    try {
      await writeFile(path, naming("b"));
      await becomes("b");
    } finally {
      busy = false;
      await neighbour;
    }
  });

  it("sees an edit that comes while the watcher is still starting", async (t) => {
    const root = await scratchFolder(t);
    const starting = startSourcing(t, { root, text: naming("a") });
    const { path, becomes } = await starting;
    await writeFile(path, naming("b"));
    await becomes("b");
  });

  it("reports the preset file, and takes it for no edit of the document", async (t) => {
    const root = await scratchFolder(t);
    const preset = join(root, "state", "router.preset.ini");
    await mkdir(join(root, "state"));
    await writeFile(preset, "");
    const { presets, documents, becomes, path } = await startSourcing(t, { root, text: naming("a") });
    await writeFile(path, naming("b"));
    await becomes("b");
    await writeFile(preset, "[*]\n");
    await until("it is reported", () => presets() > 0);
    assert.deepEqual(documents, ["a", "b"]);
  });

  it("reports a preset file that came after the start: what was changed in it before it was watched has no event", async (t) => {
    const { root, presets } = await startSourcing(t, { text: naming("a"), pollMs: 30 });
    await writeFile(join(root, "state", "router.preset.ini"), "[*]\n");
    await until("it is reported", () => presets() > 0);
  });

  it("is silent after it was closed", async (t) => {
    const { path, source, documents, told } = await startSourcing(t, { text: naming("a") });
    await writeFile(path, naming("b"));
    await source.close();
    const before = [documents.length, told.length];
    await writeFile(path, naming("c"));
    await pace(250);
    assert.deepEqual([documents.length, told.length], before);
  });
});

describe("where no events come", () => {
  it("polls: the folder itself is swapped by a link above it", async (t) => {
    const root = await scratchFolder(t);
    for (const name of ["one", "two"]) {
      await mkdir(join(root, name));
      await writeFile(join(root, name, "gateway.yaml"), naming(name));
    }
    await symlink("one", join(root, "current"));
    const { becomes, names } = await startSourcing(t, {
      root,
      path: join(root, "current", "gateway.yaml"),
      pollMs: 30,
    });
    assert.deepEqual(names(), ["one"]);
    await symlink("two", join(root, "next"));
    await rename(join(root, "next"), join(root, "current"));
    await becomes("two");
    // From here on the watched folder is not the one that is read: every event would be about the other.
    await writeFile(join(root, "two", "gateway.yaml"), naming("three"));
    await becomes("three");
  });

  it("polls: the folder is not there yet, or is made anew", async (t) => {
    const root = await scratchFolder(t);
    const folder = join(root, "later");
    const { becomes, reports, source } = await startSourcing(t, {
      root,
      path: join(folder, "gateway.yaml"),
      pollMs: 30,
    });
    assert.equal(source.status().reason, "FileMissing");
    await mkdir(folder);
    await writeFile(join(folder, "gateway.yaml"), naming("a"));
    await becomes("a");
    await rm(folder, { recursive: true });
    await reports("FileMissing");
    await mkdir(folder);
    await writeFile(join(folder, "gateway.yaml"), naming("b"));
    await becomes("b");
  });
});
