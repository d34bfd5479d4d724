// What the two engines of speech have in common for the loop and for requests: who uses one and who waits for it, what it
// runs with, and its stop only after the answers under way. Decides nothing, and knows no engine.
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { restingSpeech, type SpeechState } from "../plan/observed.ts";
import { createLeases } from "../speech/leases.ts";
import type { ServerSnapshot } from "./server-child.ts";

export interface SpeechEngine {
  /** As the planner sees it, for a document that names `wanted`; what is off (null) is not looked for. Never throws. */
  observe(wanted: string | null): Promise<SpeechState>;
  /** As far as it can be told without looking. */
  snapshot(): Pick<SpeechState, "phase" | "pid" | "choice" | "crashes" | "lastWords" | "silentSince"> & {
    /** Who uses it and who waits for it. */
    readonly users: number;
  };
  /** How long its last start took. */
  startMs(): number;
  /** Whether requests for this choice can be sent to it now. */
  runs(choice: string): boolean;
  /** From now until the result is called somebody waits for it. Throws `busy`. */
  want(): () => void;
  /** For the time of an answer; call the result once. Waits while it is being stopped. Throws `cancelled`. */
  lease(signal: AbortSignal): Promise<() => void>;
  /** Throws `engine_missing`, `engine_failed`, `shutting_down`. */
  start(choice: string, signal: AbortSignal): Promise<void>;
  /** Once the answers under way are through, or the time is up. */
  stop(signal: AbortSignal): Promise<void>;
  /** Resolves when nobody uses it, or the signal aborts. */
  settled(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** What is an engine's own. */
export interface EngineParts {
  snapshot(): ServerSnapshot;
  /** Throws `engine_missing`. */
  find(): Promise<unknown>;
  /** Whether the choice is on disk. */
  has(choice: string): Promise<boolean>;
  start(choice: string, signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

export interface SpeechEngineOptions {
  /** In messages: `transcriptions`. */
  readonly what: string;
  /** Answers under way and waiting, together. */
  readonly atMost: number;
  readonly idleMs: number;
  readonly drainMs: number;
  readonly now: () => number;
  /** Something is other than it was. */
  readonly onChange: () => void;
  /** There is an engine where there was none. */
  readonly onFound: () => void;
}

export function createSpeechEngine(parts: EngineParts, options: SpeechEngineOptions): SpeechEngine {
  const { what, now } = options;
  const leases = createLeases();
  let choice: string | null = null;
  /** Of the last start that went well. */
  let last: string | null = null;
  let going = false;
  let startMs = 0;
  let waiting = 0;
  let usedAt = now();
  let problem: string | null = null;
  let timer: NodeJS.Timeout | null = null;

  function snapshot(): ReturnType<SpeechEngine["snapshot"]> {
    const { phase, pid, crashes, lastWords, silentSince } = parts.snapshot();
    const isRunning = phase === "ready" && choice !== null;
    const seen = phase === "ready" && choice === null ? "starting" : phase;
    return {
      phase: going ? "stopping" : seen,
      pid,
      choice: isRunning ? choice : null,
      crashes,
      lastWords,
      silentSince,
      users: leases.users() + waiting,
    };
  }

  /** It is idle from now on, until somebody comes: the loop looks again when that has lasted. */
  function noteUse(): void {
    usedAt = now();
    if (timer) clearTimeout(timer);
    timer = setTimeout(options.onChange, Math.min(options.idleMs + 1, 2 ** 31 - 1));
    timer.unref();
  }

  /** What goes on answering while the wanted one is not here. */
  async function standInFor(wanted: string | null, isThere: boolean): Promise<string | null> {
    if (wanted === null || isThere || last === null || last === wanted) return null;
    return snapshot().choice === last || (await parts.has(last)) ? last : null;
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
    observe: async (wanted) => {
      if (wanted === null && parts.snapshot().phase === "stopped") return restingSpeech;
      const [isThere] = await Promise.all([wanted !== null && parts.has(wanted), look()]);
      const cached = isThere && wanted !== null ? [wanted] : [];
      const { users, ...seen } = snapshot();
      const idle = users === 0 && now() - usedAt >= options.idleMs;
      const standIn = await standInFor(wanted, isThere);
      return { ...seen, problem, cached, standIn, wanted: waiting > 0, idle };
    },
    startMs: () => startMs,
    runs: (wanted) => snapshot().choice === wanted && !going,
    want: () => {
      if (waiting + leases.users() >= options.atMost) {
        const message = `${waiting + leases.users()} ${what} are under way or waiting already`;
        throw new GatewayError("busy", message, { retryAfterMs: 5_000 });
      }
      waiting++;
      let isOver = false;
      return () => {
        if (!isOver) waiting--;
        isOver = true;
      };
    },
    lease: async (signal) => {
      const release = await leases.lease(signal);
      return () => {
        release();
        noteUse();
      };
    },
    start: async (wanted, signal) => {
      choice = null;
      const began = now();
      await parts.start(wanted, signal);
      startMs = now() - began;
      choice = wanted;
      last = wanted;
      noteUse();
    },
    stop: async (signal) => {
      going = true;
      const late = new AbortController();
      const limit = setTimeout(() => late.abort(), options.drainMs);
      let letIn = (): void => undefined;
      try {
        letIn = await leases.drain(AbortSignal.any([signal, late.signal])).catch((error: unknown) => {
          // Whoever is not through by now is cut off; whoever waits behind finds it stopped, and waits on.
          if (late.signal.aborted && !signal.aborted) return () => undefined;
          throw error;
        });
        await parts.stop();
        choice = null;
      } finally {
        clearTimeout(limit);
        going = false;
        letIn();
      }
    },
    settled: async (signal) => {
      const letIn = await leases.drain(signal).catch(() => null);
      letIn?.();
    },
    close: async () => {
      if (timer) clearTimeout(timer);
      await parts.stop();
    },
  };
}
