// An executor whose actions do what the test says, and a record of how they went.
import type { TestContext } from "node:test";
import {
  type ActionRun,
  createExecutor,
  type Executor,
  type Handlers,
  type Outcome,
} from "../../src/execute/executor.ts";
import { type Action, type ActionKind, actionKinds, type Progress } from "../../src/plan/actions.ts";
import { cleanUp } from "./clean-up.ts";

export type Doing = (action: Action, run: ActionRun) => Promise<Partial<Pick<Outcome, "seen">> | void>;

export interface Executing {
  readonly executor: Executor;
  /** `start KEY`, `end KEY` and `end KEY CODE`, in order. */
  readonly log: string[];
  readonly outcomes: Outcome[];
  readonly progress: Progress[];
}

export function pull(name: string, revision?: string): Action {
  return {
    kind: "model.pull",
    key: `model/${name}`,
    model: name,
    revision,
    reason: "ModelAbsent",
    message: "",
    disrupts: [],
  };
}

/** An action of the control lane. */
export function control(key = "router"): Action {
  return { kind: "router.start", key, reason: "Test", message: "", disrupts: [] };
}

/** `doing` stands for every handler. */
export function startExecutor(
  t: TestContext,
  doing: Doing,
  options: { transfers?: number; now?: () => number; onSettled?: (outcome: Outcome) => void } = {},
): Executing {
  const log: string[] = [];
  const outcomes: Outcome[] = [];
  const progress: Progress[] = [];
  const handlers = Object.fromEntries(actionKinds.map((kind: ActionKind) => [kind, doing])) as unknown as Handlers;
  const executor = createExecutor({
    handlers,
    transfers: options.transfers ?? 1,
    now: options.now ?? Date.now,
    onStarted: ({ key }) => void log.push(`start ${key}`),
    onProgress: (_action, step) => void progress.push(step),
    onSettled: (outcome) => {
      outcomes.push(outcome);
      log.push(`end ${outcome.action.key}${outcome.error ? ` ${outcome.error.code}` : ""}`);
      options.onSettled?.(outcome);
    },
  });
  cleanUp(t, () => executor.close());
  return { executor, log, outcomes, progress };
}

export interface Gate {
  /** Waits until it is opened, or fails with the signal's reason. */
  pass(signal?: AbortSignal): Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    open: () => open(),
    pass: (signal) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
        void opened.then(resolve);
      }),
  };
}
