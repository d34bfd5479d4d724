// An engine of speech for the loop and for requests: a queue of one, one process with its choice (a voice, a model), its
// replacement after the response in flight, and whether it is idle. Decides nothing; independent of the engine.
import { clientLeftError, GatewayError, toGatewayError } from "../../core/errors.ts";
import { createLine } from "../../core/line.ts";
import { longestTimerMs } from "../../core/steady.ts";
import { unlessLeft } from "../../core/unless-left.ts";
import { restingSpeech, type SpeechState } from "../../plan/observed.ts";
import type { ServerProcess } from "../process/server-process.ts";
import { within } from "../process/within.ts";

/** One process of an engine. */
export interface EngineRun {
  readonly process: ServerProcess;
  /** It is due to be replaced. */
  isWorn?(): boolean;
}

export interface SpeechEngine<R extends EngineRun = EngineRun> {
  /** As the planner sees it, for a document that names `wanted`; what is off (null) is not searched for. Never throws. */
  observe(wanted: string | null): Promise<SpeechState>;
  /** As far as it is known without a search. */
  snapshot(): Pick<SpeechState, "phase" | "pid" | "choice" | "crashes" | "exitReason" | "silentSince"> & {
    /** Requests in flight and queued. */
    readonly users: number;
  };
  /** Waits for the turn of a request; call the result, once, when its response is through. Throws `busy`, `cancelled`. */
  take(signal: AbortSignal): Promise<() => void>;
  othersWait(): boolean;
  runs(choice: string): boolean;
  /** The process, whose end waits until `release` is called; null where it does not run with this choice. */
  use(choice: string): { readonly run: R; release(): void } | null;
  /** With another choice or a fresh process, once the response in flight is through. Throws `engine_missing`, `engine_failed`. */
  start(choice: string, signal: AbortSignal): Promise<void>;
  /** Once the response in flight is through, or `drainMs` are over. Throws `cancelled`. */
  stop(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** What is an engine's own. */
export interface EngineParts<R extends EngineRun> {
  /** Throws `engine_missing`. */
  find(): Promise<unknown>;
  /** Whether the choice is on disk. */
  has(choice: string): Promise<boolean>;
  launch(choice: string, signal: AbortSignal): Promise<R>;
  /** The next process starts beside the current one: a choice that does not start leaves the current one. */
  readonly overlaps: boolean;
}

export interface SpeechEngineOptions {
  /** In messages: `transcriptions`. */
  readonly what: string;
  /** How many requests may wait. */
  readonly queueDepth: number;
  readonly idleMs: number;
  /** ms for the response in flight to end. */
  readonly drainMs: number;
  readonly now: () => number;
  readonly onChange: () => void;
  /** There is an engine where there was none. */
  readonly onFound: () => void;
}

const keptCrashes = 20;

export function createSpeechEngine<R extends EngineRun>(
  parts: EngineParts<R>,
  options: SpeechEngineOptions,
): SpeechEngine<R> {
  const { what, idleMs, now, onChange } = options;
  const queue = createLine({
    width: 1,
    depth: options.queueDepth,
    refusal: (waiting) => new GatewayError("busy", `${waiting} ${what} are waiting already`, { retryAfterMs: 5_000 }),
    gone: () => clientLeftError(),
  });
  const { current, ...slot } = createSlot({ ...parts, ...options, onUse: noteUse });
  let usedAt = now();
  let problem: string | null = null;
  let idleTimer: NodeJS.Timeout | undefined;

  /** It is idle from now on, unless a request comes: the loop observes again when that has lasted. */
  function noteUse(): void {
    usedAt = now();
    clearTimeout(idleTimer);
    idleTimer = setTimeout(onChange, Math.min(idleMs + 1, longestTimerMs)).unref();
  }

  async function search(): Promise<void> {
    const before = problem;
    problem = await parts.find().then(
      () => null,
      (error: unknown) => toGatewayError(error).message,
    );
    if (before !== null && problem === null) options.onFound();
  }

  async function observe(wanted: string | null): Promise<SpeechState> {
    if (wanted === null && slot.snapshot().phase === "stopped") return restingSpeech;
    const [isThere] = await Promise.all([wanted !== null && parts.has(wanted), search()]);
    return {
      ...slot.snapshot(),
      problem,
      cached: isThere && wanted !== null ? [wanted] : [],
      wanted: queue.users() > 0,
      idle: queue.users() === 0 && now() - usedAt >= idleMs,
      worn: current()?.isWorn?.() ?? false,
    };
  }

  return {
    ...slot,
    observe,
    take: queue.take,
    snapshot: () => ({ ...slot.snapshot(), users: queue.users() }),
    othersWait: () => queue.waiting() > 0,
    close: async () => {
      clearTimeout(idleTimer);
      await slot.close();
    },
  };
}

/** The process, its choice, how it ended, and its replacement. `onUse`: it was started, or used. */
function createSlot<R extends EngineRun>({
  launch,
  overlaps,
  drainMs,
  now,
  onChange,
  onUse,
}: EngineParts<R> & SpeechEngineOptions & { readonly onUse: () => void }) {
  let current: { readonly choice: string; readonly run: R } | null = null;
  /** What is under way: a start may be beside the current process. */
  let phase: "starting" | "stopping" | null = null;
  /** Settles with the one response in flight. */
  let answer: Promise<void> | null = null;
  let crashes: readonly number[] = [];
  let exitReason = "";

  const runs = (choice: string): boolean => current?.choice === choice && phase !== "stopping";

  function phaseNow(): SpeechState["phase"] {
    if (current && phase !== "stopping") return "ready";
    return phase ?? "stopped";
  }

  async function during<T>(what: "starting" | "stopping", work: Promise<T>): Promise<T> {
    phase = what;
    onChange();
    try {
      return await work;
    } finally {
      phase = null;
      onChange();
    }
  }

  async function start(choice: string, signal: AbortSignal): Promise<void> {
    const fresh = current && overlaps ? await during("starting", launch(choice, signal)) : null;
    try {
      await stop(signal);
    } catch (error) {
      await fresh?.process.stop();
      throw error;
    }
    const run = fresh ?? (await during("starting", launch(choice, signal)));
    current = { choice, run };
    onUse();
    void run.process.ended.then((reason) => noteEnd(run, reason));
    onChange();
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

  async function stop(signal: AbortSignal): Promise<void> {
    if (current) await during("stopping", end(signal));
  }

  async function end(signal: AbortSignal): Promise<void> {
    if (answer) await unlessLeft(within(answer, drainMs), signal);
    await current?.run.process.stop();
    current = null;
    exitReason = "";
  }

  function use(choice: string): ReturnType<SpeechEngine<R>["use"]> {
    if (!current || !runs(choice)) return null;
    const { run } = current;
    let land = (): void => undefined;
    answer = new Promise((resolve) => {
      land = resolve;
    });
    const release = (): void => {
      answer = null;
      land();
      onUse();
      if (run.isWorn?.() === true) onChange();
    };
    return { run, release };
  }

  return {
    current: () => current?.run ?? null,
    snapshot: () => ({
      phase: phaseNow(),
      pid: current?.run.process.pid ?? null,
      choice: current?.choice ?? null,
      crashes,
      exitReason,
      silentSince: current?.run.process.silentSince() ?? null,
    }),
    runs,
    use,
    start,
    stop,
    close: async () => {
      phase = "stopping";
      await current?.run.process.stop();
    },
  };
}
