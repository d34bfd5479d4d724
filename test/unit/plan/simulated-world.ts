// A machine in memory: actions change it as they change a real one, and it drifts as real ones do. It breaks (throws) where
// the real one would come to harm: a preset that ends the router, a phantom model, a file deleted that is not ours.

import { GatewayError } from "../../../src/core/errors.ts";
import type { Desired } from "../../../src/desired/document/document.ts";
import { type Action, type BackoffEntry, laneOf, type Plan } from "../../../src/plan/actions.ts";
import { noLoads } from "../../../src/plan/load-record.ts";
import { type InventoryEntry, type Observed, type RouterSnapshot, restingSpeech } from "../../../src/plan/observed.ts";
import { plan } from "../../../src/plan/plan.ts";
import { parsePreset } from "../../../src/plan/preset-file.ts";
import { namedEntries } from "../../../src/plan/removals.ts";
import { createBackoffBook } from "../../../src/reconcile/pacing.ts";
import { readAsRouter } from "./router-reading.ts";
import { createSimulatedCache, type Hub, lastOnly, sourceAt } from "./simulated-cache.ts";
import { known, restingRouter, silenceLimitMs, type WorldFile, workersOf } from "./world.ts";

export type Drift =
  | { readonly kind: "crash" | "hang" | "cache.restored" | "inventory.lost" }
  | { readonly kind: "file.lost" | "model.loaded"; readonly nth: number }
  | { readonly kind: "file.added"; readonly file: WorldFile }
  | { readonly kind: "preset.edited"; readonly text: string; readonly nth: number }
  | { readonly kind: "preset.emptied" }
  | { readonly kind: "folder.unreadable"; readonly repo: string };

export interface SimulatedWorld {
  desired: Desired;
  observe(): Observed;
  plan(): Plan;
  /** Executes the first action of each lane, the control lane's first. */
  step(plan: Plan): void;
  /** Whether it succeeded. */
  execute(action: Action): boolean;
  backoff(): ReadonlyMap<string, BackoffEntry>;
  /** ms. */
  now(): number;
  /** Lets the time pass until then. */
  waitUntil(at: number): void;
  drift(drift: Drift): void;
  /** Plans and executes until nothing is planned but what has failed for good. Throws after `bound` rounds. */
  settle(bound: number): { readonly plan: Plan; readonly rounds: number };
  files(): readonly WorldFile[];
}

export function createSimulatedWorld(options: {
  readonly desired: Desired;
  readonly hub: Hub;
  readonly files: readonly WorldFile[];
  readonly inventory: readonly InventoryEntry[];
  readonly preset: string;
  /** A router of before there was a live reload answers it, and changes nothing. */
  readonly reloads: boolean;
}): SimulatedWorld {
  const stored = createSimulatedCache(options);
  let presetText = options.preset;
  let router: RouterSnapshot = restingRouter;
  let loaded = new Set<string>();
  let now = 1_000_000;
  const book = createBackoffBook(() => now);

  const parse = lastOnly(parsePreset);
  const { cache } = stored;
  const restart = (): void => {
    loaded = new Set();
    const models = known(readAsRouter(presetText, cache().models, loaded));
    router = {
      ...router,
      phase: "ready",
      pid: 1,
      loadedPreset: presetText,
      loadedCache: cache().signature,
      freshlyStarted: true,
      silentSince: null,
      models,
    };
  };

  const world: SimulatedWorld = {
    desired: options.desired,
    files: stored.files,
    observe: () => ({
      loads: noLoads,
      workers: workersOf(world.desired),
      cache: known(cache()),
      preset: known(parse(presetText)),
      inventory: stored.inventory(),
      freeBytes: known(1e12),
      speech: { transcription: restingSpeech, synthesis: restingSpeech },
      sources: new Map(
        world.desired.models.flatMap(({ source }) => (source === undefined ? [] : [[source, sourceAt(source)]])),
      ),
      router,
      documentFiles: new Map(),
    }),
    plan: () => {
      stored.noteLeft(namedEntries(world.desired, world.observe()), now);
      return plan(world.desired, world.observe(), { now, backoff: book.entries(), silenceLimitMs });
    },
    step: ({ actions }) => {
      for (const lane of ["control", "transfer"]) {
        const action = actions.find(({ kind }) => laneOf(kind) === lane);
        if (action) execute(action);
      }
      now += 100;
    },
    execute,
    backoff: book.entries,
    now: () => now,
    waitUntil: (at) => {
      now = Math.max(now, at);
    },
    drift,
    settle: (bound) => {
      for (let rounds = 0; rounds <= bound; rounds++) {
        const found = world.plan();
        if (found.actions.length === 0) {
          const next = Math.min(
            ...found.held.flatMap((held) => held.until ?? []),
            (router.silentSince ?? Number.POSITIVE_INFINITY) + silenceLimitMs,
          );
          if (!Number.isFinite(next)) return { plan: found, rounds };
          now = Math.max(now + 1, next);
        }
        world.step(found);
      }
      throw new Error(
        `not settled after ${bound} rounds: ${JSON.stringify(world.plan().actions.map(({ kind, key, reason }) => ({ kind, key, reason })))}`,
      );
    },
  };
  return world;

  function execute(action: Action): boolean {
    try {
      run(action);
      book.succeeded(action);
      return true;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      book.failed(action, error);
      return false;
    }
  }

  function run(action: Action): void {
    switch (action.kind) {
      case "model.pull":
      case "model.import": {
        const isReplaced =
          action.kind === "model.pull"
            ? stored.pull(action.model, action.revision)
            : stored.bring(action.model, action.source);
        return isReplaced || action.verify === true ? unload(action.disrupts) : undefined;
      }
      case "model.remove":
        unload(action.disrupts);
        return action.requested ? removeRequested(action.model) : stored.remove(action.model);
      case "cache.gc":
        throw new Error("collecting is never planned");
      case "preset.write":
        presetText = action.text;
        return;
      case "router.start":
      case "router.restart":
        return restart();
      case "router.reload":
        return reload(action.disrupts);
      case "voice.pull":
      case "transcription.pull":
      case "speech.start":
      case "speech.stop":
        throw new Error("no document of these tests has speech");
      default:
        return action satisfies never;
    }
  }

  function removeRequested(id: string): void {
    const removal = world.desired.removals.find((other) => other.id === id);
    if (!removal) throw new Error(`${id} is removed, but nobody asked for it`);
    stored.removeRequested(removal);
    world.desired = { ...world.desired, removals: world.desired.removals.filter((other) => other !== removal) };
  }

  function unload(ids: readonly string[]): void {
    loaded = new Set([...loaded].filter((id) => !ids.includes(id)));
    if (router.models.state === "unknown") return;
    const after = router.models.value.map((model) =>
      ids.includes(model.id) ? { ...model, value: "unloaded", nCtx: null } : model,
    );
    router = { ...router, models: known(after) };
  }

  function reload(announced: readonly string[]): void {
    if (options.reloads && router.models.state === "known") {
      // The order of options does not count: a size that moves from `[*]` to a section ends nothing.
      const settings = (args: readonly string[]): string => args.toSorted().join(" ");
      const before = new Map(router.models.value.map((model) => [model.id, settings(model.args)]));
      const listed = readAsRouter(presetText, cache().models, new Set());
      const stays = (id: string): boolean =>
        listed.some((model) => model.id === id && settings(model.args) === before.get(id));
      for (const id of loaded)
        if (!stays(id) && !announced.includes(id)) throw new Error(`the reload ended ${id} unannounced`);
      loaded = new Set([...loaded].filter(stays));
      router = { ...router, models: known(readAsRouter(presetText, cache().models, loaded)) };
    }
    router = { ...router, loadedPreset: presetText, loadedCache: cache().signature, freshlyStarted: false };
  }

  function drift(change: Drift): void {
    switch (change.kind) {
      case "crash":
        if (router.phase !== "ready") return;
        loaded = new Set();
        router = { ...restingRouter, crashes: [...router.crashes, now] };
        return;
      case "hang":
        if (router.phase === "ready")
          router = { ...router, silentSince: now, models: { state: "unknown", why: "no answer" } };
        return;
      case "file.lost":
        return stored.lose(change.nth);
      case "file.added":
        return stored.put(change.file);
      case "preset.emptied":
        presetText = "";
        return;
      case "preset.edited": {
        const lines = presetText.split("\n");
        presetText = lines.toSpliced(change.nth % (lines.length + 1), 0, change.text).join("\n");
        return;
      }
      case "model.loaded": {
        if (router.models.state === "unknown") return;
        const id = router.models.value[change.nth % Math.max(1, router.models.value.length)]?.id;
        if (id === undefined) return;
        loaded.add(id);
        router = {
          ...router,
          models: known(router.models.value.map((model) => (model.id === id ? { ...model, value: "loaded" } : model))),
        };
        return;
      }
      case "folder.unreadable":
        return stored.setUnreadable([change.repo]);
      case "cache.restored":
        return stored.setUnreadable([]);
      case "inventory.lost":
        return stored.forget();
      default:
        change satisfies never;
    }
  }
}
