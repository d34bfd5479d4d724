// The loop: observe, plan, hand the plan to the executor, tell what was found. Level-triggered: a wake carries no content,
// many wakes make one pass, and a pass looks at everything.
import { jittered } from "../core/backoff.ts";
import { GatewayError } from "../core/errors.ts";
import { equalJson } from "../core/merge-patch.ts";
import { longestTimerMs } from "../core/steady.ts";
import type { DesiredState } from "../desired/document/document.ts";
import type { Executor, Outcome } from "../execute/executor.ts";
import type { Observer } from "../observe/observe.ts";
import {
  type Action,
  type BackoffEntry,
  backoffKey,
  isAtRest,
  type Plan,
  type RunningAction,
} from "../plan/actions.ts";
import { type Observed, speechKinds } from "../plan/observed.ts";
import { plan } from "../plan/plan.ts";
import type { Needs } from "../plan/room.ts";
import { choiceKey } from "../plan/speech.ts";
import { type BackoffBook, createBackoffBook } from "./backoff-book.ts";
import { createSettling } from "./settling.ts";
import { createSizeBook, type SizeBook } from "./size-book.ts";

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

export interface Loop {
  start(): void;
  /** Asks for a pass soon. */
  wake(reason: string): void;
  /** Forgets failures and looks again: somebody asked. */
  retry(): void;
  settled(outcome: Outcome): void;
  /** What transfers tell of their size. */
  readonly sizes: Pick<SizeBook, "progressed" | "totals">;
  /** The newest pass; null before the first. */
  last(): Pass | null;
  backoff: BackoffBook["entries"];
  /** What transfers need of the disk, as far as it is known now. */
  needs(): Needs;
  /**
   * Resolves with the first pass that has seen the generation and satisfies the test; `fresh`: one that begins after the call.
   * Errors: `wait_timeout`, `shutting_down`, and whatever the test throws.
   */
  waitFor(options: {
    generation: number;
    fresh?: boolean;
    timeoutMs: number;
    signal?: AbortSignal;
    test: (pass: Pass) => boolean;
  }): Promise<Pass>;
  stop(): Promise<void>;
}

interface Waiter {
  readonly check: (pass: Pass) => void;
  readonly fail: (error: GatewayError) => void;
}

/** After a look that failed, the next one, in ms. */
const soonMs = 1_000;
/** While a part of the world cannot be seen, in ms. */
const unseenMs = 2_000;

/** How soon to look again for room on the disk, in ms. */
const roomMs = 10_000;

export function createLoop(options: {
  readonly desired: () => DesiredState;
  readonly observer: Observer;
  readonly executor: Executor;
  readonly resyncMs: number;
  readonly silenceLimitMs: number;
  readonly now: () => number;
  readonly random: () => number;
  readonly onPass: (pass: Pass) => void;
  /** Somebody asked for what had failed to be tried again. */
  readonly onRetry?: () => void;
  readonly onError: (error: unknown) => void;
}): Loop {
  const backoff = createBackoffBook(options.now);
  const sizes = createSizeBook();
  const settling = createSettling(options.now);
  const waiters = new Set<Waiter>();
  let last: Pass | null = null;
  let seenGeneration = -1;
  let count = 0;
  let settledCount = 0;
  let dirty = false;
  let passing: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let stopped = true;
  let ended = false;
  let failed = false;

  function wake(): void {
    dirty = true;
    if (stopped || passing) return;
    passing = run().finally(() => {
      passing = null;
      if (dirty && !stopped) wake();
    });
  }

  async function run(): Promise<void> {
    // Everything that arrives in this turn of the event loop is part of one pass.
    await new Promise(setImmediate);
    while (dirty && !stopped) {
      dirty = false;
      try {
        await pass();
        failed = false;
      } catch (error) {
        failed = true;
        options.onError(error);
      }
    }
    schedule();
  }

  async function pass(): Promise<void> {
    const number = ++count;
    const desired = options.desired();
    if (desired.generation !== seenGeneration) {
      // A new document is a new chance for what had failed.
      if (seenGeneration >= 0) backoff.forgive();
      seenGeneration = desired.generation;
      settling.changed();
    }
    const before = settledCount;
    const observed = await options.observer.observe();
    if (stopped) return;
    // What was looked at before an action ended would have the same done again: a file imported twice.
    if (settledCount !== before) {
      dirty = true;
      return;
    }
    const found = plan(desired.document, observed, {
      now: options.now(),
      backoff: backoff.entries(),
      silenceLimitMs: options.silenceLimitMs,
      settledAt: settling.settledAt(),
      needs: needs(),
    });
    cancelUnwanted(desired, found);
    for (const action of found.actions) options.executor.submit(action);
    last = {
      number,
      at: options.now(),
      desired,
      observed,
      plan: found,
      running: options.executor.running(),
    };
    options.onPass(last);
    for (const waiter of waiters) waiter.check(last);
  }

  /**
   * A transfer is given up when the document no longer asks for it, or asks for the model otherwise. That the plan is
   * silent says nothing: the cache may be unreadable, or the model all but there.
   */
  function cancelUnwanted({ document }: DesiredState, found: Plan): void {
    const named = new Set(document.models.map(({ id }) => id));
    const speech = speechKinds.map((kind) => choiceKey(kind, document.speech?.[kind] ?? ""));
    const planned = new Map(
      [...found.held.map((held) => held.action), ...found.actions].map((action) => [action.key, action]),
    );
    for (const { action, lane } of options.executor.running()) {
      // While it drains nothing has happened yet: what is wanted by now comes after it otherwise, up to a minute later.
      if (action.kind === "router.reload" && !isSameReload(planned.get(action.key), action))
        options.executor.cancel(action.key);
      const isAsked = action.kind === "voice.pull" && action.requested === true;
      if (lane === "speech-transfer" && !speech.includes(action.key) && !isAsked) options.executor.cancel(action.key);
      // Its drain takes up to 30 s: time enough to put the model back.
      if (action.kind === "model.remove" && !action.requested && !found.actions.some(({ key }) => key === action.key))
        options.executor.cancel(action.key);
      if (lane !== "transfer" || !("model" in action)) continue;
      const instead = planned.get(action.key);
      if (instead ? !isSameTransfer(instead, action) : !named.has(action.model)) options.executor.cancel(action.key);
    }
  }

  function needs(): Needs {
    return sizes.needs(options.executor.running());
  }

  function schedule(): void {
    if (timer) clearTimeout(timer);
    if (stopped) return;
    const now = options.now();
    // What came due between the plan and here is late, and not over.
    const heldUntil = (last?.plan.held ?? []).flatMap(({ until }) => until ?? []);
    // A router that has gone silent is looked at again soon: it may have to be restarted.
    if (typeof last?.observed.router.silentSince === "number") heldUntil.push(now + options.silenceLimitMs / 4);
    if (failed) heldUntil.push(now + soonMs);
    // Nobody tells when a disk gets room.
    if (last?.plan.held.some(({ why }) => why === "room")) heldUntil.push(now + roomMs);
    // What cannot be read comes back without an event: a disk that is mounted, a folder that is moved back.
    const { cache, preset } = last?.observed ?? {};
    if (cache?.state === "unknown" || preset?.state === "unknown") heldUntil.push(now + unseenMs);
    const next = Math.min(
      now + jittered(options.resyncMs, options.random()),
      backoff.nextTry(now) ?? Number.POSITIVE_INFINITY,
      ...heldUntil,
    );
    timer = setTimeout(wake, Math.min(Math.max(1, next - now), longestTimerMs));
    timer.unref();
  }

  return {
    start: () => {
      stopped = false;
      wake();
    },
    wake,
    retry: () => {
      backoff.forgive();
      sizes.forget();
      options.onRetry?.();
      wake();
    },
    settled: ({ action, error }) => {
      settledCount++;
      sizes.settled(action, error);
      if (!error) backoff.succeeded(action);
      else if (error.code !== "cancelled") backoff.failed(action, error);
      wake();
    },
    sizes,
    last: () => last,
    backoff: backoff.entries,
    needs,
    waitFor: ({ generation, fresh, timeoutMs, signal, test }) =>
      new Promise((resolve, reject) => {
        const begun = fresh ? count : 0;
        const deadline = setTimeout(
          () => waiter.fail(new GatewayError("wait_timeout", `not reached within ${timeoutMs} ms`)),
          Math.min(timeoutMs, longestTimerMs),
        );
        const onAbort = (): void => waiter.fail(new GatewayError("cancelled", "the client left"));
        function leave(): void {
          clearTimeout(deadline);
          signal?.removeEventListener("abort", onAbort);
          waiters.delete(waiter);
        }
        const waiter: Waiter = {
          check: (pass) => {
            if (pass.desired.generation < generation || pass.number <= begun) return;
            try {
              if (!test(pass)) return;
            } catch (error) {
              leave();
              reject(error);
              return;
            }
            leave();
            resolve(pass);
          },
          fail: (error) => {
            leave();
            reject(error);
          },
        };
        if (ended) return waiter.fail(new GatewayError("shutting_down", "the gateway is stopping"));
        if (signal?.aborted) return onAbort();
        signal?.addEventListener("abort", onAbort, { once: true });
        waiters.add(waiter);
        wake();
      }),
    stop: async () => {
      stopped = true;
      ended = true;
      if (timer) clearTimeout(timer);
      for (const waiter of waiters) waiter.fail(new GatewayError("shutting_down", "the gateway is stopping"));
      await passing;
    },
  };
}

function isSameReload(instead: Action | undefined, action: Action & { readonly kind: "router.reload" }): boolean {
  return instead?.kind === "router.reload" && equalJson([...instead.changes], [...action.changes]);
}

function isSameTransfer(a: Action, b: Action): boolean {
  if (a.kind === "model.pull") return b.kind === "model.pull" && a.revision === b.revision;
  return a.kind === "model.import" && b.kind === "model.import" && a.source === b.source;
}

/** Nothing left that will be done now: what the document asks for and cannot be had does not count as left. */
export function isSettled({ plan: found, running, observed }: Pass): boolean {
  return isAtRest(found) && running.length === 0 && observed.router.phase === "ready";
}

/** Everything is as the document says. */
export function isConverged(pass: Pass): boolean {
  return isSettled(pass) && pass.plan.findings.size === 0;
}

/** What is still open and why, in one sentence for a person. */
export function openMatters({ plan: found, running }: Pass, backoff: ReadonlyMap<string, BackoffEntry>): string {
  const actions = [...running.map((entry) => entry.action), ...found.actions, ...found.held.map((held) => held.action)];
  const matters = new Map(
    actions.map((action) => [action.key, `${action.message}${because(backoff.get(backoffKey(action)))}`]),
  );
  return [...matters.values(), ...found.findings.values()].join("; ") || "the router is not running";
}

function because(entry: BackoffEntry | undefined): string {
  return entry ? ` (failed: ${entry.message})` : "";
}
