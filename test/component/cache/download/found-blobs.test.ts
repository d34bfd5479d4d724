// Blobs that another program stored: a pull uses them once they are hashed, and the inventory tells them from its own.
import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { type Inventory, openInventory } from "../../../../src/cache/inventory/inventory.ts";
import { createRepoTurns } from "../../../../src/cache/removal/repo-turns.ts";
import { createCacheScanner } from "../../../../src/cache/scan/scan.ts";
import type { Router } from "../../../../src/engines/llama/router.ts";
import type { ActionRun, Handlers } from "../../../../src/execute/executor.ts";
import { modelHandlers } from "../../../../src/execute/model-actions.ts";
import type { CachedModel } from "../../../../src/plan/observed.ts";
import { modelHead, sha256 } from "../../../support/cache-folder.ts";
import { type Pulling, startPulling } from "../../../support/pulling.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const repo = "acme/demo-GGUF";
const eight = `${repo}:Q8_0`;
const files = { "demo-Q8_0.gguf": modelHead("eight"), "mmproj-F16.gguf": modelHead("projector") };
const [found, projector] = [sha256(files["demo-Q8_0.gguf"]), sha256(files["mmproj-F16.gguf"])];
const action = { key: `model/${eight}`, model: eight, reason: "", message: "", disrupts: [] };

interface Handling extends Pulling {
  readonly inventory: Inventory;
  readonly handlers: Pick<Handlers, "model.pull" | "model.remove">;
  readonly run: ActionRun;
  /** Names of blobs. */
  blobs(): Promise<string[]>;
  cached(): Promise<readonly CachedModel[]>;
}

async function handling(t: TestContext): Promise<Handling> {
  const pulling = await startPulling(t);
  const { cacheDir } = pulling;
  const stateDir = await scratchFolder(t);
  const inventory = await openInventory(stateDir, () => undefined);
  const scanner = createCacheScanner(cacheDir);
  const cached = async (): Promise<readonly CachedModel[]> => {
    const scan = await scanner.scan();
    assert.ok(scan.state === "known");
    return scan.value.models;
  };
  const handlers = modelHandlers({
    cacheDir,
    gateway: "mine",
    configPath: join(stateDir, "gateway.yaml"),
    hub: pulling.client,
    mirror: null,
    inventory,
    router: { instances: { get: () => null } } as unknown as Router,
    drainer: { drain: () => Promise.resolve(() => undefined), abandon: () => Promise.resolve() },
    removals: { get: () => undefined, note: () => Promise.resolve(), end: () => Promise.resolve() },
    turns: createRepoTurns(),
    now: () => 0,
    isWanted: () => false,
    cachedModels: cached,
    onVerified: () => undefined,
  });
  const blobs = join(cacheDir, `models--${repo.replace("/", "--")}`, "blobs");
  await mkdir(blobs, { recursive: true });
  return {
    ...pulling,
    inventory,
    handlers,
    run: { signal: new AbortController().signal, report: () => undefined },
    blobs: async () => (await readdir(blobs).catch(() => [])).sort(),
    cached,
  };
}

describe("a blob that another program stored", () => {
  it("is used once it was hashed, told apart, and stays where the model is pruned", async (t) => {
    const { hub, inventory, handlers, run, blobs, cached, cacheDir } = await handling(t);
    hub.addRepo(repo, { files });
    await writeFile(join(cacheDir, `models--${repo.replace("/", "--")}`, "blobs", found), files["demo-Q8_0.gguf"]);
    const origins = (): unknown => inventory.get(eight)?.files.map((file) => [file.blob, file.found ?? false]);
    const expected = [
      [found, true],
      [projector, false],
    ];
    for (const time of ["at first", "when it is pulled again"]) {
      await handlers["model.pull"]({ ...action, kind: "model.pull", revision: undefined }, run);
      assert.deepEqual(origins(), expected, time);
    }
    assert.equal(hub.sentBytes("demo-Q8_0.gguf"), 0);
    await handlers["model.remove"]({ ...action, kind: "model.remove", requested: false }, run);
    assert.deepEqual([await blobs(), await cached(), inventory.entries()], [[found], [], []]);
  });

  it("is replaced where its bytes are others, and is this gateway's own then", async (t) => {
    const { hub, inventory, handlers, run, blobs, cacheDir, shown } = await handling(t);
    hub.addRepo(repo, { files });
    const wrong = Buffer.from(files["demo-Q8_0.gguf"]).fill(0, 100);
    await writeFile(join(cacheDir, `models--${repo.replace("/", "--")}`, "blobs", found), wrong);
    await handlers["model.pull"]({ ...action, kind: "model.pull", revision: undefined }, run);
    assert.deepEqual(await shown(repo, "demo-Q8_0.gguf"), files["demo-Q8_0.gguf"]);
    assert.deepEqual(
      inventory.get(eight)?.files.map((file) => file.found),
      [undefined, undefined],
    );
    await handlers["model.remove"]({ ...action, kind: "model.remove", requested: false }, run);
    assert.deepEqual(await blobs(), []);
  });
});
