// The loop on a world of a few variables: a document, a cache that holds names, and a clock that the test moves.

import type { TestContext } from "node:test";
import { type Desired, type DesiredState, toDesired, toTree } from "../../src/desired/document/document.ts";
import { noLoads } from "../../src/plan/load-record.ts";
import {
  type CachedModel,
  type CacheSnapshot,
  type Knowable,
  type Observed,
  restingSpeech,
} from "../../src/plan/observed.ts";
import { emptyPreset, parsePreset } from "../../src/plan/preset-file.ts";
import { createLoop, type Loop, type Pass } from "../../src/reconcile/loop.ts";
import { restingRouter } from "../unit/plan/world.ts";
import { cachedModel } from "./cached-model.ts";
import { cleanUp } from "./clean-up.ts";
import { type Doing, type Executing, startExecutor } from "./executing.ts";

export interface World extends Executing {
  readonly loop: Loop;
  readonly passes: Pass[];
  readonly errors: unknown[];
  /** What is in the cache. */
  readonly cached: Set<string>;
  /** ms; starts at a million. */
  clock: number;
  cacheState: "known" | "unknown";
  unreadable: readonly string[];
  /** Called during each look, before what it sees is taken. */
  beforeLook: () => void | Promise<void>;
  /** Called during each look, after what it sees was taken. */
  afterLook: () => void | Promise<void>;
  /** How many looks there were. */
  looks(): number;
  /** Makes a new document of these models; answers with its generation. */
  want(...models: readonly (string | { id: string; revision?: string })[]): number;
  /** Keys of actions in the newest plan: those that it starts, and those that it holds, as `KEY why`. */
  planned(): { actions: string[]; held: string[] };
}

export interface LoopingOptions {
  /** What a pull does; the model is in the cache when it is done. */
  readonly pulling?: Doing;
  readonly resyncMs?: number;
  readonly transfers?: number;
}

export function startLooping(t: TestContext, options: LoopingOptions = {}): World {
  let generation = 0;
  let looks = 0;
  let preset = "";
  let document: Desired = toDesired(toTree({ version: 1 }));
  const cached = new Set<string>();
  const passes: Pass[] = [];
  const errors: unknown[] = [];

  const executing = startExecutor(
    t,
    async (action, run) => {
      if (action.kind === "preset.write") {
        preset = action.text;
        return { seen: { preset: { state: "known", value: parsePreset(preset) } } };
      }
      if (action.kind !== "model.pull") return {};
      await options.pulling?.(action, run);
      cached.add(action.model);
      return {};
    },
    { transfers: options.transfers ?? 1, now: () => world.clock, onSettled: (outcome) => loop.settled(outcome) },
  );

  function look(): Observed {
    const cache: Knowable<CacheSnapshot> = {
      state: "known",
      value: {
        dir: "/cache",
        models: [...cached].map(listedModel),
        repos: [],
        signature: [...cached].join(),
        unreadable: world.unreadable,
        faults: [],
        whole: [],
      },
    };
    return {
      workers: [],
      loads: noLoads,
      cache: world.cacheState === "known" ? cache : { state: "unknown", why: "the test says so" },
      preset: { state: "known", value: preset === "" ? emptyPreset : parsePreset(preset) },
      router: {
        ...restingRouter,
        binary: "missing",
        models: { state: "unknown", why: "" },
        knownOptions: null,
      },
      inventory: [],
      freeBytes: { state: "known", value: 2 ** 40 },
      speech: { transcription: restingSpeech, synthesis: restingSpeech },
      sources: new Map(),
      documentFiles: new Map(),
    };
  }

  const loop = createLoop({
    desired: (): DesiredState => ({ generation, tree: { version: 1 }, document, hash: "", etag: "", applied: null }),
    observer: {
      observe: async () => {
        looks++;
        await world.beforeLook();
        const seen = look();
        await world.afterLook();
        return seen;
      },
    },
    executor: executing.executor,
    resyncMs: options.resyncMs ?? 600_000,
    silenceLimitMs: 20_000,
    now: () => world.clock,
    random: () => 0,
    onPass: (pass) => void passes.push(pass),
    onError: (error) => void errors.push(error),
  });
  cleanUp(t, () => loop.stop());

  const world: World = {
    ...executing,
    loop,
    passes,
    errors,
    cached,
    clock: 1_000_000,
    cacheState: "known",
    unreadable: [],
    beforeLook: () => undefined,
    afterLook: () => undefined,
    looks: () => looks,
    want: (...models) => {
      document = toDesired(toTree({ version: 1, models: [...models] }));
      generation++;
      loop.wake();
      return generation;
    },
    planned: () => {
      const found = passes.at(-1)?.plan;
      return {
        actions: (found?.actions ?? []).map(({ key }) => key),
        held: (found?.held ?? []).map(({ action, why }) => `${action.key} ${why}`),
      };
    },
  };
  return world;
}

/** As the router lists it. */
function listedModel(id: string): CachedModel {
  const [, tag = ""] = id.split(":");
  return cachedModel(id, { routerId: id, upstreamId: id, files: [`/cache/${tag}.gguf`], blobs: [null] });
}
