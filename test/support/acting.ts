// Pulling, importing and removing as the executor runs them: files in a real cache, the inventory beside it.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Inventory, openInventory } from "../../src/cache/inventory/inventory.ts";
import { createRepoTurns } from "../../src/cache/removal/repo-turns.ts";
import { createDamage, type Damage } from "../../src/cache/scan/damage.ts";
import { createCacheScanner } from "../../src/cache/scan/scan.ts";
import type { Removal } from "../../src/desired/document/document.ts";
import type { Router } from "../../src/engines/llama/router.ts";
import { createExecutor, type Executor, type Handlers, type Outcome } from "../../src/execute/executor.ts";
import { modelHandlers } from "../../src/execute/model-actions.ts";
import { createHubClient } from "../../src/hub/client.ts";
import type { Action } from "../../src/plan/actions.ts";
import type { CachedModel } from "../../src/plan/observed.ts";
import { modelHead } from "./cache-folder.ts";
import { cleanUp } from "./clean-up.ts";
import { type LoopbackHub, startLoopbackHub } from "./loopback-hub.ts";
import { scratchFolder, until } from "./scratch.ts";

export const repo = "acme/demo-GGUF";
export const eight = `${repo}:Q8_0`;
export const four = `${repo}:Q4_0`;

export interface Acting {
  readonly root: string;
  readonly cacheDir: string;
  readonly hub: LoopbackHub;
  readonly inventory: Inventory;
  readonly executor: Executor;
  /** What the drainer was asked to empty. */
  readonly drained: string[];
  /** What somebody asked to remove. */
  readonly removals: Map<string, Removal>;
  /** Resolves with the outcome of an action. */
  act(
    kind: "model.pull" | "model.import" | "model.remove",
    model: string,
    source?: string,
    verify?: boolean,
  ): Promise<Outcome>;
  cached(): Promise<readonly CachedModel[]>;
  readonly damage: Damage;
  /** Names of blobs of the demo repository. */
  blobs(): Promise<string[]>;
}

export async function acting(t: TestContext): Promise<Acting> {
  const root = await scratchFolder(t);
  const cacheDir = join(root, "hub");
  const hub = await startLoopbackHub(t);
  const client = createHubClient({ endpoint: hub.endpoint, token: undefined });
  cleanUp(t, () => client.close());
  const inventory = await openInventory(root, () => undefined);
  const damage = createDamage(cacheDir, inventory.entries);
  const scanner = createCacheScanner(cacheDir, undefined, inventory.entries, damage.hashed);
  const cached = async (): Promise<readonly CachedModel[]> => {
    const found = await scanner.scan();
    assert.ok(found.state === "known");
    return found.value.models;
  };
  const drained: string[] = [];
  const drainer = {
    drain: async (models: readonly string[] | "all") => {
      drained.push(...(models === "all" ? ["all"] : models));
      return () => void drained.push("let in");
    },
    abandon: async (id: string) => void drained.push(`ended ${id}`),
  };
  const router = { instances: { get: () => null } } as unknown as Router;
  const removals = new Map<string, Removal>();
  const outcomes: Outcome[] = [];
  const handlers = modelHandlers({
    cacheDir,
    gateway: "mine",
    configPath: join(root, "gateway.yaml"),
    hub: client,
    mirror: null,
    inventory,
    router,
    drainer,
    removals: {
      get: (id) => removals.get(id),
      note: async (id, found) => {
        const removal = removals.get(id);
        if (removal) removals.set(id, { ...removal, ...found });
      },
      end: async (id) => void removals.delete(id),
    },
    turns: createRepoTurns(),
    now: () => 0,
    isWanted: () => false,
    cachedModels: cached,
    onVerified: damage.forget,
  });
  const executor = createExecutor({
    handlers: handlers as unknown as Handlers,
    transfers: 1,
    now: Date.now,
    onStarted: () => undefined,
    onProgress: () => undefined,
    onSettled: (outcome) => void outcomes.push(outcome),
  });
  cleanUp(t, () => executor.close());
  return {
    root,
    cacheDir,
    hub,
    inventory,
    executor,
    drained,
    removals,
    cached,
    damage,
    act: (kind, model, source = "", verify = false) => {
      const action = {
        kind,
        key: `model/${model}`,
        model,
        source,
        verify,
        revision: undefined,
        requested: removals.has(model),
        reason: "",
        message: "",
        disrupts: [],
      } as Action;
      executor.submit(action);
      return until(`${kind} ${model} has settled`, () => outcomes.find((outcome) => outcome.action === action));
    },
    blobs: async () =>
      (await readdir(join(cacheDir, `models--${repo.replace("/", "--")}`, "blobs")).catch(() => [])).sort(),
  };
}

export const files = {
  "demo-Q8_0.gguf": modelHead("eight", 8192),
  "demo-Q4_0.gguf": modelHead("four", 4096),
  "mmproj-F16.gguf": modelHead("projector"),
};

export const requested: Removal = {
  id: eight,
  repo,
  names: [eight],
  commit: "a".repeat(40),
  files: [],
  projector: null,
  presetSection: false,
  blobs: [],
  requestedAt: "",
  by: "test",
};
