// Runs planned actions in their lanes, one per key, and reports how each ended. Chooses nothing.
import PQueue from "p-queue";
import type { RemovedFiles } from "../cache/removal/remove.ts";
import type { Collected } from "../cache/report/garbage.ts";
import { GatewayError, stoppingError, toGatewayError } from "../core/errors.ts";
import { type Action, type ActionKind, laneOf, type Progress, type RunningAction } from "../plan/actions.ts";
import type { Observed } from "../plan/observed.ts";

export interface ActionRun {
  readonly signal: AbortSignal;
  report(progress: Progress): void;
}

/** What an action that is done has seen of what it changed; null: it does not know. */
interface Seen {
  readonly seen: Partial<Observed> | null;
}

interface Results {
  readonly "preset.write": Seen;
  readonly "router.reload": Seen;
  readonly "model.remove": { readonly removed: RemovedFiles };
  readonly "cache.gc": { readonly collected: Collected };
}

export type Handler<K extends ActionKind> = (
  action: Extract<Action, { kind: K }>,
  run: ActionRun,
) => Promise<K extends keyof Results ? Results[K] : void>;
export type Handlers = { readonly [K in ActionKind]: Handler<K> };

export interface Outcome {
  readonly action: Action;
  readonly ms: number;
  /** null: done. */
  readonly error: GatewayError | null;
  /** Of a removal that is done. */
  readonly removed: RemovedFiles | null;
  /** Of a collection that is done. */
  readonly collected: Collected | null;
  /** Null too for one that does not look. */
  readonly seen: Partial<Observed> | null;
}

type Done = Partial<Pick<Outcome, "removed" | "collected" | "seen">> | void;

/** Observes the actions with one key. */
export interface Follower {
  progress?(action: Action, progress: Progress): void;
  /** Called before the loop records it. */
  settled?(outcome: Outcome): void;
}

export type Executor = ReturnType<typeof createExecutor>;

interface Task {
  readonly action: Action;
  readonly abort: AbortController;
  startedAt: number | null;
  progress: Progress | null;
  /** ms */
  reportedAt: number;
}

export function createExecutor(options: {
  readonly handlers: Handlers;
  readonly transfers: number;
  readonly now: () => number;
  readonly onStarted: (action: Action) => void;
  readonly onProgress: (action: Action, progress: Progress) => void;
  readonly onSettled: (outcome: Outcome) => void;
}) {
  const lanes = createLanes(options.transfers);
  const tasks = new Map<string, Task>();
  const followers = new Map<string, Set<Follower>>();
  let closed = false;

  async function execute(task: Task): Promise<Done> {
    task.startedAt = options.now();
    options.onStarted(task.action);
    const run = options.handlers[task.action.kind] as (action: Action, run: ActionRun) => Promise<Done>;
    return run(task.action, {
      signal: task.abort.signal,
      report: (progress) => {
        task.progress = progress;
        task.reportedAt = options.now();
        options.onProgress(task.action, progress);
        for (const follower of followersOf(task)) follower.progress?.(task.action, progress);
      },
    });
  }

  function followersOf({ action }: Task): readonly Follower[] {
    return [...(followers.get(action.key) ?? [])];
  }

  async function settle(task: Task, work: Promise<Done>): Promise<void> {
    let error: GatewayError | null = null;
    let done: Done | null = null;
    try {
      done = await work;
    } catch (thrown) {
      const { signal } = task.abort;
      // The reason of the abort is more useful than the error that it caused.
      error = toGatewayError(signal.aborted ? signal.reason : thrown);
    }
    tasks.delete(task.action.key);
    const ms = task.startedAt === null ? 0 : options.now() - task.startedAt;
    const { removed = null, collected = null, seen = null } = done ?? {};
    const outcome: Outcome = { action: task.action, ms, error, removed, collected, seen };
    for (const follower of followersOf(task)) follower.settled?.(outcome);
    options.onSettled(outcome);
  }

  /** In its lane. One that is aborted while it waits is settled at once; a running one is waited for, as it cleans up. */
  function enqueue(task: Task): Promise<Done> {
    const { signal } = task.abort;
    return new Promise((resolve, reject) => {
      const onAbort = (): void => reject(signal.reason as Error);
      signal.addEventListener("abort", onAbort, { once: true });
      void lanes[laneOf(task.action.kind)].add(async () => {
        signal.removeEventListener("abort", onAbort);
        if (!signal.aborted) await execute(task).then(resolve, reject);
      });
    });
  }

  return {
    /** Queues an action, unless one with its key is queued or running. */
    submit: (action: Action): boolean => {
      if (closed || tasks.has(action.key)) return false;
      const task: Task = { action, abort: new AbortController(), startedAt: null, progress: null, reportedAt: 0 };
      tasks.set(action.key, task);
      void settle(task, enqueue(task));
      return true;
    },
    running: (): RunningAction[] =>
      [...tasks.values()].map(({ action, startedAt, progress, reportedAt }) => ({
        action,
        lane: laneOf(action.kind),
        startedAt,
        progress: paceNow(progress, options.now() - reportedAt),
      })),
    /** Call the result to stop. */
    follow: (key: string, follower: Follower): (() => void) => {
      const own = followers.get(key) ?? new Set();
      followers.set(key, own.add(follower));
      return () => {
        own.delete(follower);
        if (own.size === 0 && followers.get(key) === own) followers.delete(key);
      };
    },
    /** Aborts the action with this key, queued or running. */
    cancel: (key: string): void => tasks.get(key)?.abort.abort(new GatewayError("cancelled", "no longer wanted")),
    /** Aborts everything and resolves when all has ended. */
    close: async (): Promise<void> => {
      closed = true;
      // The partial of a pull is kept: it resumes after the next start.
      for (const task of tasks.values()) task.abort.abort(stoppingError());
      await Promise.all(Object.values(lanes).map((lane) => lane.onIdle()));
    },
  };
}

function createLanes(transfers: number) {
  return {
    control: new PQueue({ concurrency: 1 }),
    transfer: new PQueue({ concurrency: transfers }),
    // Its two engines have nothing to do with each other.
    speech: new PQueue({ concurrency: 2 }),
    "speech-transfer": new PQueue({ concurrency: 1 }),
  };
}

/** Bytes come in many times a second; after so long nothing does. */
const silentMs = 5_000;

/** The rate of a transfer that has stalled is none, whatever it was. */
function paceNow(progress: Progress | null, ageMs: number): Progress | null {
  if (progress?.bytesPerSecond === undefined || ageMs < silentMs) return progress;
  return { ...progress, bytesPerSecond: 0, secondsLeft: progress.secondsLeft === 0 ? 0 : null };
}
