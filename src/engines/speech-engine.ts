// What the two engines of speech have in common for the loop and for requests: a queue of one, the process that runs and with
// which choice (a voice, a model), and its end only after the answer under way. Decides nothing, and knows no engine.
import { setTimeout as delay } from "node:timers/promises";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { createLine } from "../core/line.ts";
import { unlessLeft } from "../core/unless-left.ts";
import { restingSpeech, type SpeechState } from "../plan/observed.ts";
import type { ServerProcess } from "./server-process.ts";

export interface SpeechEngine {
  /** As the planner sees it, for a document that names `wanted`; what is off (null) is not looked for. Never throws. */
  observe(wanted: string | null): Promise<SpeechState>;
  /** As far as it is known without a look. */
  snapshot(): Pick<SpeechState, "phase" | "pid" | "choice" | "crashes" | "exitReason" | "silentSince"> & {
    /** Requests that are answered or wait. */
    readonly users: number;
  };
  /** Waits for the turn of a request; call the result, once, when its answer is through. Throws `busy`, `cancelled`. */
  take(signal: AbortSignal): Promise<() => void>;
  othersWait(): boolean;
  /** Whether it can be used with this choice now. */
  runs(choice: string): boolean;
  /** From now until the result is called its end waits; null where it does not run with this choice. */
  use(choice: string): (() => void) | null;
  /** With another choice or a fresh process, once the answer under way is through. Throws `engine_missing`, `engine_failed`. */
  start(choice: string, signal: AbortSignal): Promise<void>;
  /** Once the answer under way is through, or `drainMs` are over. Throws `cancelled`. */
  stop(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** One process of an engine. */
export interface EngineRun {
  readonly process: ServerProcess;
  /** It is to be replaced by a fresh one. */
  isWorn?(): boolean;
}

/** What is an engine's own. */
export interface EngineParts<R extends EngineRun> {
  /** Throws `engine_missing`. */
  find(): Promise<unknown>;
  /** Whether the choice is on disk. */
  has(choice: string): Promise<boolean>;
  launch(choice: string, signal: AbortSignal): Promise<R>;
  /** The next process starts beside the one that answers: a choice with which none starts costs nobody the one before. */
  readonly overlaps: boolean;
}

export interface SpeechEngineOptions {
  /** In messages: `transcriptions`. */
  readonly what: string;
  /** How many requests may wait. */
  readonly queueDepth: number;
  readonly idleMs: number;
  readonly drainMs: number;
  readonly now: () => number;
  /** Its state changed. */
  readonly onChange: () => void;
  /** There is an engine where there was none. */
  readonly onFound: () => void;
}

const keptCrashes = 20;
const longestTimerMs = 2 ** 31 - 1;

/** `current`: the process that answers. Throws `engine_failed` where none runs. */
export function createSpeechEngine<R extends EngineRun>(
  parts: EngineParts<R>,
  options: SpeechEngineOptions,
): SpeechEngine & { current(): R } {
  const { what, now, onChange } = options;
  const line = createLine({
    width: 1,
    depth: options.queueDepth,
    refusal: (waiting) => new GatewayError("busy", `${waiting} ${what} are waiting already`, { retryAfterMs: 5_000 }),
    gone: () => new GatewayError("cancelled", "the client left"),
  });
  let current: { readonly choice: string; readonly run: R } | null = null;
  /** Of the last start that succeeded. */
  let last: string | null = null;
  let launching = 0;
  let isEnding = false;
  /** Settles when the answer under way is through. */
  let use: Promise<void> | null = null;
  let users = 0;
  let usedAt = now();
  let crashes: readonly number[] = [];
  let exitReason = "";
  let problem: string | null = null;
  let idleTimer: NodeJS.Timeout | undefined;

  function snapshot(): ReturnType<SpeechEngine["snapshot"]> {
    const phase = isEnding ? "stopping" : current ? "ready" : launching > 0 ? "starting" : "stopped";
    return {
      phase,
      pid: current?.run.process.pid ?? null,
      choice: current?.choice ?? null,
      crashes,
      exitReason,
      silentSince: current?.run.process.silentSince() ?? null,
      users,
    };
  }

  /** It is idle from now on, unless a request comes: the loop looks again when that has lasted. */
  function noteUse(): void {
    usedAt = now();
    clearTimeout(idleTimer);
    idleTimer = setTimeout(onChange, Math.min(options.idleMs + 1, longestTimerMs)).unref();
  }

  function noteEnd(run: R, reason: string | null): void {
    if (current?.run !== run) return;
    current = null;
    if (reason !== null) {
      crashes = [...crashes.slice(1 - keptCrashes), now()];
      exitReason = reason;
    }
    onChange();
  }

  async function launch(choice: string, signal: AbortSignal): Promise<R> {
    launching++;
    onChange();
    try {
      return await parts.launch(choice, signal);
    } finally {
      launching--;
      onChange();
    }
  }

  async function endCurrent(signal: AbortSignal): Promise<void> {
    if (!current) return;
    isEnding = true;
    onChange();
    const drained = new AbortController();
    try {
      const limit = delay(options.drainMs, undefined, { signal: drained.signal });
      await unlessLeft(Promise.race([use, limit]), signal);
      await current?.run.process.stop();
      current = null;
      exitReason = "";
    } finally {
      drained.abort();
      isEnding = false;
      onChange();
    }
  }

  async function look(): Promise<void> {
    const before = problem;
    try {
      await parts.find();
      problem = null;
    } catch (error) {
      problem = toGatewayError(error).message;
    }
    if (before !== null && problem === null) options.onFound();
  }

  return {
    snapshot,
    current: () => {
      if (current) return current.run;
      throw new GatewayError("engine_failed", `the engine for ${what} is ${snapshot().phase}`);
    },
    observe: async (wanted) => {
      if (wanted === null && snapshot().phase === "stopped") return restingSpeech;
      const [isThere] = await Promise.all([wanted !== null && parts.has(wanted), look()]);
      const { users: waiting, ...seen } = snapshot();
      const hasOther = wanted !== null && !isThere && last !== null && last !== wanted;
      return {
        ...seen,
        problem,
        cached: isThere && wanted !== null ? [wanted] : [],
        fallback: hasOther && (seen.choice === last || (await parts.has(last ?? ""))) ? last : null,
        wanted: waiting > 0,
        idle: waiting === 0 && now() - usedAt >= options.idleMs,
        worn: current?.run.isWorn?.() ?? false,
      };
    },
    take: async (signal) => {
      users++;
      try {
        const over = await line.take(signal);
        return () => {
          over();
          users--;
        };
      } catch (error) {
        users--;
        throw error;
      }
    },
    othersWait: () => line.waiting() > 0,
    runs: (choice) => current?.choice === choice && !isEnding,
    use: (choice) => {
      if (current?.choice !== choice || isEnding) return null;
      let release = (): void => undefined;
      use = new Promise((resolve) => {
        release = resolve;
      });
      return () => {
        use = null;
        release();
        noteUse();
        if (current?.run.isWorn?.() === true) onChange();
      };
    },
    start: async (choice, signal) => {
      const fresh = current && parts.overlaps ? await launch(choice, signal) : null;
      try {
        await endCurrent(signal);
      } catch (error) {
        await fresh?.process.stop();
        throw error;
      }
      const run = fresh ?? (await launch(choice, signal));
      current = { choice, run };
      last = choice;
      noteUse();
      void run.process.ended.then((reason) => noteEnd(run, reason));
      onChange();
    },
    stop: endCurrent,
    close: async () => {
      clearTimeout(idleTimer);
      isEnding = true;
      await current?.run.process.stop();
    },
  };
}

/** Whether the process ended instead of refusing: the next request for it has another one started. */
export function hasEnded(error: unknown): boolean {
  const { code, cause } = toGatewayError(error);
  return code === "engine_failed" || (code === "upstream_failed" && cause !== undefined);
}
