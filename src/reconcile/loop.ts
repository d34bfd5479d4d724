// The loop: observe, plan, hand the plan to the executor, report. Level-triggered: a wake carries no content, many wakes make one
// pass, and a pass observes everything.
import { jittered } from "../core/backoff.ts";
import { equalJson } from "../core/json.ts";
import type { Desired, DesiredState } from "../desired/document/document.ts";
import type { Executor, Outcome } from "../execute/executor.ts";
import type { Observer } from "../observe/observe.ts";
import {
  type Action,
  type BackoffEntry,
  backoffKey,
  isAtRest,
  type Plan,
  type Progress,
  type RunningAction,
} from "../plan/actions.ts";
import { type Observed, speechKinds } from "../plan/observed.ts";
import { plan } from "../plan/plan.ts";
import { choiceKey } from "../plan/speech.ts";
import { createBackoffBook, createPacing, createSettling } from "./pacing.ts";
import { createWaiters, type PassWait } from "./waiters.ts";

/** What a pass found. */
export interface Pass {
  /** Counts passes that began. */
  readonly number: number;
  readonly at: number;
  readonly desired: DesiredState;
  readonly observed: Observed;
  readonly plan: Plan;
  readonly running: readonly RunningAction[];
}

export type Loop = ReturnType<typeof createLoop>;

/** ms until the next pass after one that failed. */
const soonMs = 1_000;
/** ms until the next pass while a part of the world cannot be observed. */
const unseenMs = 2_000;

/** ms until the next pass while a pull lacks disk space, or a file is to come from another gateway. */
const othersMs = 10_000;

interface LoopOptions {
  readonly desired: () => DesiredState;
  readonly observer: Observer;
  readonly executor: Executor;
  readonly resyncMs: number;
  readonly silenceLimitMs: number;
  /** Another gateway writes the model cache. */
  readonly isReader?: boolean | undefined;
  readonly now: () => number;
  readonly random: () => number;
  readonly onPass: (pass: Pass) => void;
  /** A retry of what had failed was requested. */
  readonly onRetry?: () => void;
  readonly onError: (error: unknown) => void;
}

export function createLoop(options: LoopOptions) {
  const backoff = createBackoffBook(options.now, options.random);
  const totals = new Map<string, number>();
  const settling = createSettling(options.now);
  const waiters = createWaiters<Pass>(() => (last ? openMatters(last, backoff.entries()) : "nothing was observed yet"));
  let last: Pass | null = null;
  let seenGeneration = -1;
  let count = 0;
  /** Of the document of the pass under way; null: none is under way. */
  let passGeneration: number | null = null;
  let settledCount = 0;
  /** Of those, the ones that were over before the newest snapshot was taken. */
  let seenCount = 0;

  async function pass(): Promise<void> {
    const number = ++count;
    const desired = options.desired();
    passGeneration = desired.generation;
    if (desired.generation !== seenGeneration) {
      // A new document is a new chance for what had failed.
      if (seenGeneration >= 0) backoff.reset();
      seenGeneration = desired.generation;
      settling.changed();
    }
    const before = settledCount;
    const observed = await options.observer.observe();
    if (pacing.isStopped()) return;
    // What was observed before an action ended would have the same done again: a file imported twice.
    if (settledCount !== before) return pacing.wake();
    conclude({ number, desired, observed });
  }

  /** Plans, hands the plan to the executor, reports. */
  function conclude({ number, desired, observed }: Pick<Pass, "number" | "desired" | "observed">): void {
    seenCount = settledCount;
    const found = plan(desired.document, observed, {
      now: options.now(),
      backoff: backoff.entries(),
      silenceLimitMs: options.silenceLimitMs,
      isReader: options.isReader,
      settledAt: settling.settledAt(),
      underWay: underWay(),
    });
    const { executor } = options;
    for (const key of unwantedKeys(desired.document, found, executor.running())) executor.cancel(key);
    for (const action of found.actions) executor.submit(action);
    const running = executor.running();
    last = { number, at: options.now(), desired, observed, plan: found, running };
    options.onPass(last);
    // First: a call that waits next would take this pass for one that is to come, and wait for the resync.
    endPass();
    waiters.check(last);
  }

  /**
   * Plans on with what an action has seen itself of what it changed: looking at everything again took 4 ms before the reload of an
   * edit, and 8 ms beside its load. The next pass, in a moment, does that.
   */
  function goOn(seen: Partial<Observed>): void {
    const desired = options.desired();
    const isNewest =
      passGeneration === null && seenCount === settledCount - 1 && !pacing.isDue() && !pacing.isStopped();
    if (!last || !isNewest || last.desired.generation !== desired.generation) return pacing.wake();
    pacing.wakeLater();
    try {
      // By the number of the pass it goes on from: a call that waits for a later one waits on.
      conclude({ number: last.number, desired, observed: { ...last.observed, ...seen } });
    } catch (error) {
      options.onError(error);
    }
  }

  /** Keys of the actions that have begun. */
  function underWay(): readonly string[] {
    return options.executor.running().flatMap(({ action, startedAt }) => (startedAt === null ? [] : action.key));
  }

  function untilNext(failed: boolean): number {
    const now = options.now();
    const due = last ? dueTimes(last, now, options.silenceLimitMs).map((at) => at - now) : [];
    return Math.min(jittered(options.resyncMs, options.random()), failed ? soonMs : Infinity, ...due);
  }

  const endPass = (): void => {
    passGeneration = null;
  };
  const pacing = createPacing({ pass: () => pass().finally(endPass), untilNext, onError: options.onError });

  return {
    start: pacing.start,
    wake: pacing.wake,
    wakeLater: pacing.wakeLater,
    /** Forgets failures and wakes the loop, as a retry was requested. */
    retry: (): void => {
      backoff.reset();
      options.onRetry?.();
      pacing.wake();
    },
    settled: ({ action, error, seen }: Outcome): void => {
      settledCount++;
      if (!error) {
        totals.delete(action.key);
        backoff.succeeded(action);
      } else if (error.code !== "cancelled") backoff.failed(action, error);
      if (seen) goOn(seen);
      else pacing.wake();
    },
    progressed: ({ key }: Action, { total }: Progress): void => {
      if (total > 0) totals.set(key, total);
    },
    /** Bytes of all that a transfer brings, by its action's key: of those that are not done and have reported it. */
    totals: (): ReadonlyMap<string, number> => totals,
    /** The newest pass; null before the first. */
    last: () => last,
    backoff: backoff.entries,
    underWay,
    /** The first pass that has seen the generation and passes the test. Errors: `wait_timeout`, `shutting_down`, the test's. */
    waitFor: (wait: PassWait<Pass>): Promise<Pass> => {
      const waiting = waiters.add(wait, wait.fresh ? count : 0);
      // The edit that is waited for has asked for a pass already.
      if (!pacing.isDue() && (wait.fresh || (passGeneration ?? -1) < wait.generation)) pacing.wake();
      return waiting;
    },
    stop: (): Promise<void> => {
      waiters.end();
      return pacing.stop();
    },
  };
}

/** To cancel, as the document asks for something else. A plan without the action is no reason: the cache may be unreadable. */
function unwantedKeys(document: Desired, plan: Plan, running: readonly RunningAction[]): string[] {
  const named = new Set(document.models.map(({ id }) => id));
  const speech = speechKinds.map((kind) => choiceKey(kind, document.speech?.[kind] ?? ""));
  const planned = new Map(
    [...plan.held.map((held) => held.action), ...plan.actions].map((action) => [action.key, action]),
  );

  function isUnwanted({ action, lane }: RunningAction): boolean {
    const instead = planned.get(action.key);
    // While it drains nothing has happened yet: what is wanted by now would otherwise come after it, up to a minute later.
    if (action.kind === "router.reload") return !isSameReload(instead, action);
    // Its drain takes up to 30 s: time enough to put the model back.
    if (action.kind === "model.remove") return !action.requested && !plan.actions.some(({ key }) => key === action.key);
    if (lane === "speech-transfer")
      return !speech.includes(action.key) && !(action.kind === "voice.pull" && action.requested === true);
    if (lane !== "transfer" || !("model" in action)) return false;
    return instead ? !isSameTransfer(instead, action) : !named.has(action.model);
  }

  return running.filter(isUnwanted).map(({ action }) => action.key);
}

function isSameReload(instead: Action | undefined, action: Action & { readonly kind: "router.reload" }): boolean {
  return instead?.kind === "router.reload" && equalJson([...instead.changes], [...action.changes]);
}

function isSameTransfer(a: Action, b: Action): boolean {
  if (a.kind === "model.pull") return b.kind === "model.pull" && a.revision === b.revision;
  return a.kind === "model.import" && b.kind === "model.import" && a.source === b.source;
}

/** When the pass has to be followed by another one at the latest, whatever happens. */
function dueTimes({ plan: found, observed }: Pass, now: number, silenceLimitMs: number): number[] {
  // What came due between the plan and here is late, and not over.
  const due = found.held.flatMap(({ until }) => until ?? []);
  // A router that has gone silent is observed again soon: it may have to be restarted.
  if (observed.router.silentSince !== null) due.push(now + silenceLimitMs / 4);
  // There is no event for a disk that has space again, nor for a file that another machine stores.
  if (found.held.some(({ why }) => why === "room" || why === "writer")) due.push(now + othersMs);
  // What cannot be read comes back without an event: a disk that is mounted, a folder that is moved back.
  if (observed.cache.state === "unknown" || observed.preset.state === "unknown") due.push(now + unseenMs);
  return due;
}

/** Nothing left that will be done now: what the document asks for and cannot be had does not count as left. */
export function isSettled({ plan: found, running, observed }: Pick<Pass, "plan" | "running" | "observed">): boolean {
  return isAtRest(found) && running.length === 0 && observed.router.phase === "ready";
}

/** Everything is as the document says. */
export function isConverged(pass: Pass): boolean {
  return isSettled(pass) && pass.plan.findings.size === 0;
}

/** What is still open and why, in one sentence for a person. */
function openMatters({ plan: found, running, observed }: Pass, backoff: ReadonlyMap<string, BackoffEntry>): string {
  const unseen = [observed.cache, observed.preset].flatMap((part) => (part.state === "unknown" ? part.why : []));
  if (unseen.length > 0) return unseen.join("; ");
  const actions = [...running, ...found.actions.map((action) => ({ action })), ...found.held];
  const matters = new Map(
    actions.map(({ action }) => {
      const failure = backoff.get(backoffKey(action));
      return [action.key, failure ? `${action.message} (failed: ${failure.message})` : action.message];
    }),
  );
  return [...matters.values(), ...found.findings.values()].join("; ") || "the router is not running";
}
