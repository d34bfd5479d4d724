// The process of a speech engine: its choice (a voice, a model), how it ended, and its replacement after the response in flight.
// Independent of the engine.
import { setTimeout as delay } from "node:timers/promises";
import { unlessLeft } from "../../core/unless-left.ts";
import type { SpeechState } from "../../plan/observed.ts";
import type { ServerProcess } from "./server-process.ts";

/** One process of an engine. */
export interface EngineRun {
  readonly process: ServerProcess;
  /** It is due to be replaced. */
  isWorn?(): boolean;
  /** Resolves when the next request can be sent to it, or it has ended. */
  free?(): Promise<void>;
}

export interface EngineSlot<R extends EngineRun> {
  snapshot(): Pick<SpeechState, "phase" | "pid" | "choice" | "crashes" | "exitReason" | "silentSince">;
  current(): R | null;
  /** Of the last start that succeeded. */
  last(): string | null;
  runs(choice: string): boolean;
  /** The process, whose end waits until `release` is called; null where it does not run with this choice. */
  use(choice: string): { readonly run: R; release(): void } | null;
  start(choice: string, signal: AbortSignal): Promise<void>;
  stop(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

export interface EngineSlotOptions<R extends EngineRun> {
  launch(choice: string, signal: AbortSignal): Promise<R>;
  /** The next process starts beside the current one: a choice that does not start leaves the current one. */
  readonly overlaps: boolean;
  /** ms for the response in flight to end. */
  readonly drainMs: number;
  readonly now: () => number;
  readonly onChange: () => void;
  /** It was started, or used. */
  readonly onUse: () => void;
}

const keptCrashes = 20;

export function createEngineSlot<R extends EngineRun>(options: EngineSlotOptions<R>): EngineSlot<R> {
  const { overlaps, onChange, onUse } = options;
  let current: { readonly choice: string; readonly run: R } | null = null;
  let last: string | null = null;
  let launching = 0;
  let isEnding = false;
  /** Settles when the response in flight has ended. */
  let inUse: Promise<void> | null = null;
  let crashes: readonly number[] = [];
  let exitReason = "";

  function noteEnd(run: R, reason: string | null): void {
    if (current?.run !== run) return;
    current = null;
    if (reason !== null) {
      crashes = [...crashes.slice(1 - keptCrashes), options.now()];
      exitReason = reason;
    }
    onChange();
  }

  async function launch(choice: string, signal: AbortSignal): Promise<R> {
    launching++;
    onChange();
    try {
      return await options.launch(choice, signal);
    } finally {
      launching--;
      onChange();
    }
  }

  async function stop(signal: AbortSignal): Promise<void> {
    if (!current) return;
    isEnding = true;
    onChange();
    const drained = new AbortController();
    try {
      const limit = delay(options.drainMs, undefined, { signal: drained.signal });
      await unlessLeft(Promise.race([inUse, limit]), signal);
      await current?.run.process.stop();
      current = null;
      exitReason = "";
    } finally {
      drained.abort();
      isEnding = false;
      onChange();
    }
  }

  return {
    snapshot: () => ({
      phase: isEnding ? "stopping" : current ? "ready" : launching > 0 ? "starting" : "stopped",
      pid: current?.run.process.pid ?? null,
      choice: current?.choice ?? null,
      crashes,
      exitReason,
      silentSince: current?.run.process.silentSince() ?? null,
    }),
    current: () => current?.run ?? null,
    last: () => last,
    runs: (choice) => current?.choice === choice && !isEnding,
    use: (choice) => {
      if (current?.choice !== choice || isEnding) return null;
      const { run } = current;
      let resolve = (): void => undefined;
      inUse = new Promise((settle) => {
        resolve = settle;
      });
      const release = (): void => {
        inUse = null;
        resolve();
        onUse();
        if (run.isWorn?.() === true) onChange();
      };
      return { run, release };
    },
    start: async (choice, signal) => {
      const fresh = current && overlaps ? await launch(choice, signal) : null;
      try {
        await stop(signal);
      } catch (error) {
        await fresh?.process.stop();
        throw error;
      }
      const run = fresh ?? (await launch(choice, signal));
      current = { choice, run };
      last = choice;
      onUse();
      void run.process.ended.then((reason) => noteEnd(run, reason));
      onChange();
    },
    stop,
    close: async () => {
      isEnding = true;
      await current?.run.process.stop();
    },
  };
}
