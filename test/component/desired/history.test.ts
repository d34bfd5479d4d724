// The history beside a real store, on the disk.
import assert from "node:assert/strict";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { type HistoryBook, openHistory } from "../../../src/desired/history/book.ts";
import type { History } from "../../../src/desired/history/entries.ts";
import { type DesiredStore, openDesiredStore } from "../../../src/desired/store.ts";
import { plainStateFiles, type StateFiles } from "../../../src/state/state-folder.ts";
import { patch, removal, yaml } from "../../support/documents.ts";
import { refusal, scratchFolder } from "../../support/scratch.ts";

const a = "acme/a:Q8_0";

interface Opened {
  readonly stateDir: string;
  readonly store: DesiredStore;
  readonly history: HistoryBook;
  readonly told: string[];
}

async function open(
  stateDir: string,
  files: StateFiles = plainStateFiles,
  presetAllow = new Set<string>(),
): Promise<Opened> {
  const told: string[] = [];
  const options = { stateDir, files, now: Date.now, warn: (message: string) => void told.push(message) };
  const history = await openHistory(options);
  const store = await openDesiredStore({ ...options, presetAllow, generationOf: history.generationOf });
  history.follow(store);
  return { stateDir, store, history, told };
}

async function fresh(t: TestContext): Promise<string> {
  const stateDir = join(await scratchFolder(t), "state");
  await mkdir(stateDir);
  return stateDir;
}

const generations = ({ history }: Opened): number[] => history.current().entries.map(({ generation }) => generation);

describe("the history on the disk", () => {
  it("has who changed what, and the same after a restart", async (t) => {
    const stateDir = await fresh(t);
    const first = await open(stateDir);
    await first.store.applyFile(yaml("version: 1\n"), "file:ed5a9c4a35cb", { sha256: "ed5a9c" });
    await first.store.change(patch({ [a]: { ctxSize: 512 } }), {
      by: "http:PATCH /api/desired",
      key: "ci",
      peer: "10.0.0.7",
      client: "curl/8 mgw_0123456789abcdefghij",
    });
    await first.store.edit(() => ({ patch: { models: { [a]: null } }, removal }), "api");
    first.history.outcome(2, "converged", null);
    await first.history.close();
    const kept = JSON.parse(JSON.stringify(first.history.current())) as History;
    const [one, two] = kept.entries;
    assert.deepEqual(
      [one?.by, one?.key, one?.peer, one?.client, one?.changes],
      [
        "http:PATCH /api/desired",
        "ci",
        "10.0.0.7",
        "curl/8 (redacted)",
        [{ path: ["models"], after: { [a]: { ctxSize: 512 } } }],
      ],
    );
    assert.deepEqual(
      [two?.removal, two?.changes, two?.outcome],
      [removal.id, [{ path: ["models", a], before: { ctxSize: 512 } }], "converged"],
    );
    assert.deepEqual((await open(stateDir)).history.current(), kept);
  });

  it("notes the file that a generation applied, with its revision", async (t) => {
    const opened = await open(await fresh(t));
    const file = { tree: yaml("version: 1\nprune: true\n"), sha256: "ab12", revision: "3f2a9c1" };
    await opened.store.change({ kind: "apply", file }, "http:PUT /api/desired");
    assert.deepEqual(opened.history.current().entries[0]?.file, { sha256: "ab12", revision: "3f2a9c1" });
    await opened.store.change(patch({ [a]: {} }), "api");
    assert.equal(opened.history.current().entries[1]?.file, null);
  });

  it("catches up after a kill between the document and its entry: one entry, and the way back goes on", async (t) => {
    const stateDir = await fresh(t);
    const first = await open(stateDir);
    await first.store.change(patch({ [a]: {} }), "api");
    await first.history.close();
    const before = await readFile(join(stateDir, "history.json"));
    await first.store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    await first.store.change(patch({ [a]: { ctxSize: 1024 } }), "api");
    await first.history.close();
    await writeFile(join(stateDir, "history.json"), before);
    const second = await open(stateDir);
    assert.deepEqual(generations(second), [1, 3]);
    assert.equal(second.history.entry(3).by, "unknown");
    const tree = second.history.restored(1, second.store.current().tree);
    const { document, generation } = await second.store.change({ kind: "restore", tree }, "api");
    assert.deepEqual([generation, document.models], [4, [{ id: a }]]);
  });

  it("begins with the document of a version that had none, and can go back to it", async (t) => {
    const stateDir = await fresh(t);
    const first = await open(stateDir);
    await first.store.change(patch({ [a]: {} }), "api");
    await first.history.close();
    await rm(join(stateDir, "history.json"));
    const second = await open(stateDir);
    assert.deepEqual([generations(second), second.history.current().base], [[], 1]);
    await second.store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    assert.deepEqual(second.history.tree(1), { version: 1, models: { [a]: {} } });
    assert.throws(() => second.history.tree(0), { code: "generation_not_found", message: /reaches from 1 to 2/ });
  });

  it("outlives a document that is lost, whose numbers do not come again", async (t) => {
    const stateDir = await fresh(t);
    const first = await open(stateDir);
    await first.store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    await first.history.close();
    await writeFile(join(stateDir, "desired.json"), "{");
    const second = await open(stateDir);
    assert.deepEqual([second.store.current().generation, second.store.current().document.models], [2, []]);
    const tree = second.history.restored(1, second.store.current().tree);
    const after = await second.store.change({ kind: "restore", tree }, "api");
    assert.deepEqual(after.document.models, [{ id: a, ctxSize: 512 }]);
    assert.deepEqual(generations(second), [1, 2, 3]);
  });

  it("keeps what came after a document that is put back from a backup: that has a new number", async (t) => {
    const stateDir = await fresh(t);
    const first = await open(stateDir);
    await first.store.change(patch({ [a]: { ctxSize: 1 } }), "api");
    const backup = await readFile(join(stateDir, "desired.json"), "utf8");
    await first.store.change(patch({ [a]: { ctxSize: 2 } }), "api");
    await first.history.close();
    await writeFile(join(stateDir, "desired.json"), backup);
    // The second of these starts finds the file as it was, and the history as the first has left it.
    for (const edited of [backup, backup, backup.replace('"ctxSize": 1', '"ctxSize": 3')]) {
      await writeFile(join(stateDir, "desired.json"), edited);
      const next = await open(stateDir);
      const size = edited === backup ? 1 : 3;
      assert.deepEqual(
        [next.store.current().generation, generations(next)],
        size === 1 ? [3, [1, 2, 3]] : [4, [1, 2, 3, 4]],
      );
      assert.equal(next.store.current().document.models[0]?.ctxSize, size);
      assert.deepEqual(next.history.tree(2)["models"], { [a]: { ctxSize: 2 } });
      await next.history.close();
    }
    const last = await open(stateDir);
    await last.store.change(patch({ [a]: { ctxSize: 4 } }), "api");
    assert.deepEqual(generations(last), [1, 2, 3, 4, 5]);
  });

  it("is set aside where it is damaged, and begins anew", async (t) => {
    const stateDir = await fresh(t);
    const first = await open(stateDir);
    await first.store.change(patch({ [a]: {} }), "api");
    await first.history.close();
    await writeFile(join(stateDir, "history.json"), "{");
    const second = await open(stateDir);
    assert.deepEqual([second.told, generations(second)], [["unreadable state file set aside"], []]);
    await second.store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    assert.deepEqual(generations(second), [2]);
  });

  it("is written later where the disk refuses it; the change is made and told once", async (t) => {
    const stateDir = await fresh(t);
    let refuses = true;
    const opened = await open(stateDir, {
      ...plainStateFiles,
      write: async (path, text) => {
        if (refuses && path.endsWith("history.json")) throw new GatewayError("disk_full", "no space");
        await plainStateFiles.write(path, text);
      },
    });
    await opened.store.change(patch({ [a]: {} }), "api");
    await opened.history.close();
    await opened.store.change(patch({ [a]: { ctxSize: 512 } }), "api");
    await opened.history.close();
    assert.deepEqual(opened.told, ["the history could not be written"]);
    refuses = false;
    await opened.store.change(patch({ [a]: { ctxSize: 768 } }), "api");
    await opened.history.close();
    assert.deepEqual(generations(await open(stateDir)), [1, 2, 3]);
  });
});

describe("a reset", () => {
  it("is refused where no file was ever applied: all of the document would go", async (t) => {
    const { store } = await open(await fresh(t));
    await store.change(patch({ [a]: {} }), "api");
    const error = await refusal(store.change({ kind: "reset", fields: null }, "api"));
    assert.deepEqual([error.code, store.current().generation], ["invalid_request", 1]);
  });
});

describe("back to an earlier document", () => {
  it("brings back what only the file may set, as the file had set it", async (t) => {
    const opened = await open(await fresh(t));
    const { store, history } = opened;
    await store.applyFile(yaml(`version: 1\nmodels: [{ id: ${a}, chatTemplate: ./a.jinja }]\n`), "file:1");
    await store.applyFile(yaml(`version: 1\nmodels: [${a}]\n`), "file:2");
    const tree = history.restored(1, store.current().tree);
    const { document } = await store.change({ kind: "restore", tree }, "api");
    assert.deepEqual(document.models, [{ id: a, chatTemplate: "./a.jinja" }]);
    assert.equal(
      (await refusal(store.change({ kind: "put", input: { version: 1, models: [{ id: a, mmproj: "x" }] } }, "api")))
        .code,
      "file_only",
    );
  });

  it("takes secrets from the document of now, and names one that is gone", async (t) => {
    const opened = await open(await fresh(t), plainStateFiles, new Set(["gateway-token"]));
    const { store, history } = opened;
    const preset = (value: Record<string, string | null>) => patch({ [a]: { preset: value } });
    await store.change(preset({ "gateway-token": "s3cret", temp: "1" }), "api");
    await store.change(patch({ [a]: { preset: { temp: "2" } }, "acme/later:Q8_0": { ctxSize: 512 } }), "api");
    const back = await store.change({ kind: "restore", tree: history.restored(1, store.current().tree) }, "api");
    assert.deepEqual(back.document.models, [{ id: a, preset: { "gateway-token": "s3cret", temp: "1" } }]);
    await store.change(preset({ "gateway-token": null }), "api");
    assert.throws(() => history.restored(1, store.current().tree), {
      code: "invalid_request",
      message: /secret in models\.acme\/a:Q8_0\.preset\.gateway-token/,
    });
    await history.close();
    assert.ok(!(await readFile(join(opened.stateDir, "history.json"), "utf8")).includes("s3cret"));
  });

  it("begins without secrets beside a document that has some, also where drift is the first to be written", async (t) => {
    const first = await open(await fresh(t));
    await first.store.change(patch({ [a]: { preset: { grammar: "hf_ABCDEFGHIJKLMNOPQRST" } } }), "api");
    await first.history.close();
    const path = join(first.stateDir, "history.json");
    await rm(path);
    const again = await open(first.stateDir);
    again.history.drifted(1, [{ kind: "preset.write", key: "preset", reason: "PresetDrifted", message: "drifted" }]);
    await again.history.close();
    const text = await readFile(path, "utf8");
    assert.ok(text.includes("drifted") && !text.includes("hf_A"), text);
  });
});
