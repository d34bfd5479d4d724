// What a call waits for: a change that is in force, which is once the preset is written and the running router has read it, or an
// action of its own. Not until everything is done: a running pull does not delay a context size.
import type { Collected } from "../cache/report/garbage.ts";
import { errorCatalog } from "../core/error-catalog.ts";
import { clientLeftError, GatewayError, stoppingError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import type { Author } from "../desired/author.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { Executor, Outcome } from "../execute/executor.ts";
import { type Action, backoffKey } from "../plan/actions.ts";
import type { Loop, Pass } from "../reconcile/loop.ts";
import type { StatusReport } from "../status/report.ts";

export interface Call extends Author {
  /** Aborted when the client left. */
  readonly signal: AbortSignal;
}

export interface WaitDeps {
  readonly loop: Loop;
  readonly status: () => StatusReport;
  readonly waitTimeoutMs: number;
}

/** What the preset and the router are planned under. */
const routerKeys: readonly string[] = ["preset", "router"];

/**
 * Resolves with the first pass that has seen the generation and finds nothing left to do for preset and router, nor for
 * the further keys. Errors: `suspended`, errors of the stuck action, `engine_missing`, `wait_timeout`.
 */
export function untilInForce(
  deps: WaitDeps,
  {
    generation,
    call: { signal },
    keys: further = [],
    timeoutMs = deps.waitTimeoutMs,
    test = () => true,
  }: {
    readonly generation: number;
    readonly call: Pick<Call, "signal">;
    readonly keys?: readonly string[];
    readonly timeoutMs?: number;
    /** Throws to end the wait. */
    readonly test?: (pass: Pass) => boolean;
  },
): Promise<Pass> {
  const keys = [...routerKeys, ...further];
  return deps.loop.waitFor({
    generation,
    timeoutMs,
    signal,
    test: (pass) => {
      throwIfStuck(deps, pass, keys);
      return isInForce(pass, keys) && test(pass);
    },
  });
}

function isInForce({ plan, running, observed: { cache, preset, router } }: Pass, keys: readonly string[]): boolean {
  // Nothing is planned for what cannot be read, so an empty plan proves nothing there.
  if (cache.state === "unknown" || preset.state === "unknown") return false;
  const open = [...plan.actions, ...plan.held.map((held) => held.action), ...running.map(({ action }) => action)];
  return (
    !open.some((action) => keys.includes(action.key)) &&
    router.phase === "ready" &&
    router.silentSince === null &&
    router.loadedPreset === preset.value.text
  );
}

/** Throws if one of these keys will not be done without help, or not soon. */
function throwIfStuck({ loop, status }: WaitDeps, { plan, observed }: Pass, keys: readonly string[]): void {
  for (const { action, why } of plan.held) {
    if (!keys.includes(action.key)) continue;
    if (why === "suspended") throw suspended(action.message);
    const failure = failureOf(loop, action);
    // Waiting for disk space or a writable folder may take days.
    if (failure && (why === "stalled" || errorCatalog[failure.code].reaction === "wait")) throw failure;
  }
  if (!keys.includes("router") || observed.router.binary !== "missing") return;
  const ready = status().conditions.find(({ type }) => type === "RouterReady");
  if (ready && ready.reason !== "NotStarted") throw new GatewayError("engine_missing", ready.message);
}

/** The error of an action's last try; null: it was none, or a success. */
export function failureOf(loop: Pick<Loop, "backoff">, action: Action): GatewayError | null {
  const entry = loop.backoff().get(backoffKey(action));
  if (!entry) return null;
  const isRetried = !entry.stalled && errorCatalog[entry.code].status >= 500;
  const retryAfterMs = Math.max(1_000, entry.until - steadyNow());
  return new GatewayError(entry.code, entry.message, isRetried ? { retryAfterMs } : {});
}

export function suspended(what: string): GatewayError {
  return new GatewayError("suspended", `not done, as the document has suspend: true: ${what}`);
}

/**
 * Submits an action that a call requests, or joins the one with its key, and resolves once it is done. When the caller leaves, the
 * action is cancelled or continues. Errors: those of the action, `cancelled`, `shutting_down`.
 */
export function actionDone(
  executor: Pick<Executor, "submit" | "follow" | "cancel" | "running">,
  action: Action,
  signal: AbortSignal,
  onLeave: "cancel" | "continue",
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      unfollow();
      signal.removeEventListener("abort", leave);
      settle();
    };
    const leave = (): void => {
      if (onLeave === "cancel") executor.cancel(action.key);
      end(() => reject(clientLeftError()));
    };
    const unfollow = executor.follow(action.key, {
      settled: (outcome) => end(() => (outcome.error ? reject(outcome.error) : resolve(outcome))),
    });
    signal.addEventListener("abort", leave, { once: true });
    const isUnderWay = executor.submit(action) || executor.running().some((other) => other.action.key === action.key);
    if (!isUnderWay) end(() => reject(stoppingError()));
    else if (signal.aborted) leave();
  });
}

/** Garbage collection of the model cache is requested by a call, and not by the document. */
export interface CollectDeps {
  readonly store: Pick<DesiredStore, "current">;
  readonly executor: Pick<Executor, "submit" | "follow" | "cancel" | "running">;
}

const collection: Action = {
  kind: "cache.gc",
  key: "cache",
  reason: "CollectionRequested",
  message: "delete unused files of the model cache",
  disrupts: [],
};

/** Calls at the same time have the same result. Errors: `suspended`, `cancelled` if the caller left (it continues), of the cache. */
export async function collect({ store, executor }: CollectDeps, signal: AbortSignal): Promise<Collected> {
  if (store.current().document.suspend) throw suspended(collection.message);
  const { collected } = await actionDone(executor, collection, signal, "continue");
  return collected ?? { items: [], skipped: [], deletedFiles: 0, freedBytes: 0 };
}
