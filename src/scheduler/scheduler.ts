// Which models are loaded, and which requests wait: the second controller beside the reconciler. README.md has the rules.
import type { GatewayError } from "../core/errors.ts";
import type { KeepAlive } from "../core/keep-alive.ts";
import type { TokenAnswer } from "../core/token-answer.ts";
import type { Instance } from "../engines/llama/instances.ts";
import type { Router } from "../engines/llama/router.ts";
import { createChanges } from "./changes.ts";
import { keepTime } from "./model-rules.ts";
import { createRequests } from "./requests.ts";
import { type LoadWatch, routerCalls } from "./router-calls.ts";
import type { RpcGate } from "./rpc-gate.ts";
import { createRunner, type Handlers } from "./run.ts";
import { failingLoads } from "./state/load-backoff.ts";
import { slotsView, tooLargeError } from "./state/placed.ts";
import { modelOf } from "./state/state.ts";
import { expiresAt, firstTokens, inFlight, isOpen, keepsWaiting, waiting } from "./state/tickets.ts";
import type { Limits, Memory, ModelRules, World } from "./state/world.ts";

export type Scheduler = ReturnType<typeof createScheduler>;

export interface SchedulerOptions {
  readonly router: Router;
  readonly gate: RpcGate;
  readonly limits: Limits;
  readonly modelsMax: () => number;
  /** The router has yet to read the preset that the document asks for. */
  readonly isBehind: () => boolean;
  /** Why there will be no router; null where there is one or will be. */
  readonly engineProblem: () => GatewayError | null;
  /** Whether the cache still holds a model, as far as is known. */
  readonly isCached: (id: string) => boolean;
  /** What the document sets, by the router's ids. */
  readonly rules: () => ReadonlyMap<string, ModelRules>;
  /** Whether the document keeps a model loaded. */
  readonly isPinned: (id: string) => boolean;
  readonly memory: Memory & LoadWatch;
  /** The first answer of a model begins. */
  readonly onUse: (id: string) => void;
  /** The last answer in flight of a model has ended. */
  readonly onIdle: (id: string) => void;
  readonly askFirstToken: (instance: Instance) => Promise<TokenAnswer>;
  /** What a model's processes have printed since then (ms), line by line. */
  readonly outputSince: (id: string, since: number) => Promise<readonly string[]>;
  /** Whether settings that have worked can take the place of the ones that the router has read. */
  readonly hasFallback: (id: string) => boolean;
  /** They are to do so, as no process gives a token with the ones in force. */
  readonly onFallBack: (id: string, why: string) => void;
  /** A new process has given its first token. */
  readonly onLoadVerified: (id: string) => void;
  readonly onLoadFailed: (id: string) => void;
  /** A drain has ended; `cut` answers had not. */
  readonly onDrained: (id: string, cut: number) => void;
  readonly warn: (message: string, fields: object) => void;
  readonly now: () => number;
}

export function createScheduler(options: SchedulerOptions) {
  const { limits, now, router, gate } = options;
  const runner = createRunner({
    limits: { ...limits, keepAliveMs: keepTime(limits.keepAliveMs) },
    world,
    handlers: () => handlers,
    now,
  });
  const { state, send } = runner;
  let loaded: ReadonlyMap<string, Instance> = new Map();
  /** As it was at the last `observed` event. */
  const instance = (id: string): Instance | null => loaded.get(id) ?? null;
  const own = { ...options, ...limits, instance };
  const { requests, handlers: requestHandlers } = createRequests(runner, own);
  const { changes, handlers: changeHandlers } = createChanges(runner, own);
  const handlers: Handlers = {
    ...requestHandlers,
    ...changeHandlers,
    ...routerCalls(runner, options),
    askToken: ({ id }) => void askToken(id),
    fallBack: ({ id, why }) => options.onFallBack(id, why),
    loadVerified: ({ id }) => options.onLoadVerified(id),
    loadFailed: ({ id }) => options.onLoadFailed(id),
    warn: ({ message, fields }) => options.warn(message, fields),
  };

  async function askToken(id: string): Promise<void> {
    const asked = instance(id);
    if (asked) send({ kind: "tokenAnswered", id, origin: asked.origin, answer: await options.askFirstToken(asked) });
  }

  function world(): World {
    options.memory.refresh();
    loaded = new Map(router.instances.list().map((each) => [each.id, each]));
    const { models, loadedPreset, loadedCache } = router.snapshot();
    return {
      isReady: router.isReady(),
      listed: new Map(models.state === "known" ? models.value.map(({ id, value }) => [id, value]) : []),
      loaded,
      modelsMax: options.modelsMax(),
      isBehind: options.isBehind(),
      inputs: `${loadedPreset} ${loadedCache}`,
      engineProblem: options.engineProblem(),
      refusal: gate.refusal(),
      rules: options.rules(),
      isPinned: options.isPinned,
      hasFallback: options.hasFallback,
      isCached: options.isCached,
      memory: options.memory,
    };
  }

  return {
    ...requests,
    ...changes,
    /** Where a loaded model listens, for a question that neither loads it nor counts as its use; null: not loaded, or held. */
    peek: (id: string) => (isOpen(state, id) ? instance(id) : null),
    /** A request sets how long its model stays loaded after the last answer. */
    keep: (id: string, keepAlive: KeepAlive): void => {
      if (keepAlive.kind === "default") return;
      const ms = keepAlive.kind === "forever" ? Number.POSITIVE_INFINITY : keepAlive.seconds * 1000;
      send({ kind: "keep", id, keepMs: keepTime(ms) });
    },
    /** When a loaded model is unloaded if it is not used, ms since the epoch; null: not by itself. */
    expiresAt: (id: string) => expiresAt(state, id, now()),
    /** Answers in flight, by model. */
    inFlight: () => inFlight(state),
    waiting: () => waiting(state, now()),
    /** Why a model can never be loaded, as far as is known; null: it may be. `too_large` */
    tooLarge: (id: string) => (instance(id) ? null : tooLargeError(state, modelOf(state, id))),
    slots: () => slotsView(state),
    /** Whether requests wait for this process, in it or before it, or for any model slot. */
    keepsWaiting: (process: Instance) => keepsWaiting(state, process.id, process),
    /** Of loaded models: how long the first token of their process took, ms; null: it has not come yet. */
    firstTokens: () => firstTokens(state),
    /** Models whose last load failed. */
    failing: () => failingLoads(state),
    /** Ends the backoff of a model whose load failed, or of all of them. */
    resetBackoff: (id?: string) => send({ kind: "retry", id: id ?? null }),
    /** Anything changed of what the scheduler reads of the world. */
    observe: () => send({ kind: "observed" }),
    /** The router reported progress of a load. */
    progressed: (id: string) => send({ kind: "progress", id }),
    /** Rejects every request that waits, and those that come. */
    shutDown: () => send({ kind: "shutdown" }),
  };
}
