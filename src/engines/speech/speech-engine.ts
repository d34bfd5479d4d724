// What the two engines of speech have in common for the loop and for requests: a queue of one, whether there is an engine, and
// whether it is idle. Decides nothing, and knows no engine.
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { createLine } from "../../core/line.ts";
import { longestTimerMs } from "../../core/steady.ts";
import { restingSpeech, type SpeechState } from "../../plan/observed.ts";
import { createEngineSlot, type EngineRun, type EngineSlot, type EngineSlotOptions } from "../process/engine-slot.ts";

export interface SpeechEngine<R extends EngineRun = EngineRun> extends Pick<EngineSlot<R>, "runs" | "use"> {
  /** As the planner sees it, for a document that names `wanted`; what is off (null) is not looked for. Never throws. */
  observe(wanted: string | null): Promise<SpeechState>;
  /** As far as it is known without a look. */
  snapshot(): ReturnType<EngineSlot<R>["snapshot"]> & {
    /** Requests that are answered or wait. */
    readonly users: number;
  };
  /** Waits for the turn of a request; call the result, once, when its answer is through. Throws `busy`, `cancelled`. */
  take(signal: AbortSignal): Promise<() => void>;
  othersWait(): boolean;
  /** With another choice or a fresh process, once the answer under way is through. Throws `engine_missing`, `engine_failed`. */
  start(choice: string, signal: AbortSignal): Promise<void>;
  /** Once the answer under way is through, or `drainMs` are over. Throws `cancelled`. */
  stop(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** What is an engine's own. */
export interface EngineParts<R extends EngineRun> extends Pick<EngineSlotOptions<R>, "launch" | "overlaps"> {
  /** Throws `engine_missing`. */
  find(): Promise<unknown>;
  /** Whether the choice is on disk. */
  has(choice: string): Promise<boolean>;
}

export interface SpeechEngineOptions extends Pick<EngineSlotOptions<EngineRun>, "drainMs" | "now" | "onChange"> {
  /** In messages: `transcriptions`. */
  readonly what: string;
  /** How many requests may wait. */
  readonly queueDepth: number;
  readonly idleMs: number;
  /** There is an engine where there was none. */
  readonly onFound: () => void;
}

export function createSpeechEngine<R extends EngineRun>(
  parts: EngineParts<R>,
  options: SpeechEngineOptions,
): SpeechEngine<R> {
  const { what, now, onChange } = options;
  const queue = createLine({
    width: 1,
    depth: options.queueDepth,
    refusal: (waiting) => new GatewayError("busy", `${waiting} ${what} are waiting already`, { retryAfterMs: 5_000 }),
    gone: () => new GatewayError("cancelled", "the client left"),
  });
  const slot = createEngineSlot({ ...parts, ...options, onUse: noteUse });
  let users = 0;
  let usedAt = now();
  let problem: string | null = null;
  let idleTimer: NodeJS.Timeout | undefined;

  /** It is idle from now on, unless a request comes: the loop looks again when that has lasted. */
  function noteUse(): void {
    usedAt = now();
    clearTimeout(idleTimer);
    idleTimer = setTimeout(onChange, Math.min(options.idleMs + 1, longestTimerMs)).unref();
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

  /** What answers where `wanted` is not on disk. */
  async function fallbackFor(wanted: string | null, isThere: boolean): Promise<string | null> {
    const last = slot.last();
    if (wanted === null || isThere || last === null || last === wanted) return null;
    return slot.runs(last) || (await parts.has(last)) ? last : null;
  }

  return {
    snapshot: () => ({ ...slot.snapshot(), users }),
    observe: async (wanted) => {
      if (wanted === null && slot.snapshot().phase === "stopped") return restingSpeech;
      const [isThere] = await Promise.all([wanted !== null && parts.has(wanted), look()]);
      return {
        ...slot.snapshot(),
        problem,
        cached: isThere && wanted !== null ? [wanted] : [],
        fallback: await fallbackFor(wanted, isThere),
        wanted: users > 0,
        idle: users === 0 && now() - usedAt >= options.idleMs,
        worn: slot.current()?.isWorn?.() ?? false,
      };
    },
    take: async (signal) => {
      users++;
      try {
        const over = await queue.take(signal);
        return () => {
          const leave = (): void => {
            over();
            users--;
          };
          const free = slot.current()?.free?.();
          if (free) void free.finally(leave);
          else leave();
        };
      } catch (error) {
        users--;
        throw error;
      }
    },
    othersWait: () => queue.waiting() > 0,
    runs: slot.runs,
    use: slot.use,
    start: slot.start,
    stop: slot.stop,
    close: async () => {
      clearTimeout(idleTimer);
      await slot.close();
    },
  };
}
