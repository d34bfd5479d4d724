// Runs planned actions in their lanes, one per key, and says how each ended. Chooses nothing.
import PQueue from "p-queue";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { type Action, type ActionKind, laneOf, type Progress, type RunningAction } from "../plan/actions.ts";

export interface ActionRun {
  readonly signal: AbortSignal;
  report(progress: Progress): void;
}

export type Handler<K extends ActionKind> = (action: Extract<Action, { kind: K }>, run: ActionRun) => Promise<void>;
export type Handlers = { readonly [K in ActionKind]: Handler<K> };

export interface Outcome {
  readonly action: Action;
  readonly ms: number;
  /** null: done. */
  readonly error: GatewayError | null;
}

export interface Executor {
  /** Queues an action; one whose key is under way is left alone. */
  submit(action: Action): boolean;
  running(): readonly RunningAction[];
  /** Aborts the action with this key, queued or running. */
  cancel(key: string): void;
  /** Aborts everything and resolves when all has ended. */
  close(): Promise<void>;
}

interface Task {
  readonly action: Action;
  readonly abort: AbortController;
  startedAt: number | null;
  progress: Progress | null;
}

export function createExecutor(options: {
  readonly handlers: Handlers;
  readonly transfers: number;
  readonly now: () => number;
  readonly onStarted: (action: Action) => void;
  readonly onProgress: (action: Action, progress: Progress) => void;
  readonly onSettled: (outcome: Outcome) => void;
}): Executor {
  const lanes = { control: new PQueue({ concurrency: 1 }), transfer: new PQueue({ concurrency: options.transfers }) };
  const tasks = new Map<string, Task>();
  let closed = false;

  async function execute(task: Task): Promise<void> {
    task.startedAt = options.now();
    options.onStarted(task.action);
    await dispatch(options.handlers, task.action, {
      signal: task.abort.signal,
      report: (progress) => {
        task.progress = progress;
        options.onProgress(task.action, progress);
      },
    });
  }

  async function settle(task: Task, work: Promise<void>): Promise<void> {
    let error: GatewayError | null = null;
    try {
      await work;
    } catch (thrown) {
      const { signal } = task.abort;
      // Why it was aborted tells more than how it broke off.
      error = toGatewayError(signal.aborted ? signal.reason : thrown);
    }
    tasks.delete(task.action.key);
    options.onSettled({ action: task.action, ms: task.startedAt === null ? 0 : options.now() - task.startedAt, error });
  }

  /** In its lane. One that is aborted while it waits is settled at once; a running one is waited for, as it cleans up. */
  function enqueue(task: Task): Promise<void> {
    const { signal } = task.abort;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => reject(signal.reason as Error);
      signal.addEventListener("abort", giveUp, { once: true });
      void lanes[laneOf(task.action.kind)].add(async () => {
        signal.removeEventListener("abort", giveUp);
        if (!signal.aborted) await execute(task).then(resolve, reject);
      });
    });
  }

  return {
    submit: (action) => {
      if (closed || tasks.has(action.key)) return false;
      const task: Task = { action, abort: new AbortController(), startedAt: null, progress: null };
      tasks.set(action.key, task);
      void settle(task, enqueue(task));
      return true;
    },
    running: () =>
      [...tasks.values()].map(({ action, startedAt, progress }) => ({
        action,
        lane: laneOf(action.kind),
        startedAt,
        progress,
      })),
    cancel: (key) => tasks.get(key)?.abort.abort(new GatewayError("cancelled", "no longer wanted")),
    close: async () => {
      closed = true;
      // What a pull has finished so far is kept: the next start goes on from there.
      for (const task of tasks.values()) task.abort.abort(new GatewayError("shutting_down", "the gateway is stopping"));
      await Promise.all([lanes.control.onIdle(), lanes.transfer.onIdle()]);
    },
  };
}

function dispatch(handlers: Handlers, action: Action, run: ActionRun): Promise<void> {
  switch (action.kind) {
    case "model.pull":
      return handlers["model.pull"](action, run);
    case "model.import":
      return handlers["model.import"](action, run);
    case "model.remove":
      return handlers["model.remove"](action, run);
    case "preset.write":
      return handlers["preset.write"](action, run);
    case "router.start":
      return handlers["router.start"](action, run);
    case "router.reload":
      return handlers["router.reload"](action, run);
    case "router.restart":
      return handlers["router.restart"](action, run);
    default:
      return action satisfies never;
  }
}
