// A speech engine with Piper's HTTP interface as a supervised child, replaced by a fresh one before its memory grows.
// Knows no engine: the command comes in. Cuts no text.
import { GatewayError, toGatewayError } from "../core/errors.ts";
import {
  createPiperClient,
  detectPiper,
  type PieceRequest,
  type PieceSpeaker,
  type PiperClient,
} from "../speech/piper-http.ts";
import { threadProgress } from "./computing.ts";
import {
  createServerChild,
  type ServerChild,
  type ServerChildOptions,
  type ServerCommand,
  type ServerSnapshot,
} from "./server-child.ts";
import { createStallWatch } from "./stall-watch.ts";

export interface VoiceSnapshot extends ServerSnapshot {
  /** The id of the voice that it was started with. */
  readonly voice: string | null;
  /** How often it was replaced by a fresh process. */
  readonly recycled: number;
}

export interface VoiceServer extends PieceSpeaker {
  snapshot(): VoiceSnapshot;
  /** Another voice needs a stop first. Throws `engine_missing`, `engine_failed`, `shutting_down`. */
  start(voice: string, command: VoiceCommand, signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
  /** Throws `invalid_request` for what the engine that runs cannot be asked; nothing where none runs. */
  check(piece: PieceRequest): void;
}

/** What is started, and how. */
export interface VoiceCommand extends Omit<ServerCommand, "isReady"> {
  /** It ends a piece whose client has left. */
  readonly endsWhenLeft: boolean;
  /** Below which it answers, for those who know it: `/SECRET`; empty for one that answers everybody. */
  readonly basePath: string;
}

/** When a process is replaced: what it has done by then. Piper gives no memory back, 3.5 GB were seen. */
export interface RecycleLimits {
  readonly requests: number;
  /** Of sound. */
  readonly bytes: number;
}

interface Unit {
  readonly child: ServerChild;
  client: PiperClient | null;
  /** How far it has computed. */
  look: () => Promise<string | null>;
  speaking: number;
  retired: boolean;
}

const pieceTimeoutMs = 120_000;
/** Two at once take twice as long each, and keep the other's listener from waiting for a whole piece. */
const piecesAtOnce = 2;
/** For the end of a process to be noticed, once it broke off. */
const endedWithinMs = 500;

export function createVoiceServer(
  options: Omit<ServerChildOptions, "what"> & {
    readonly recycle: RecycleLimits;
    readonly warn: (message: string, fields: object) => void;
  },
): VoiceServer {
  const units = new Set<Unit>();
  const limitText = `${options.silenceLimitMs / 1000} s`;
  let current: Unit | null = null;
  let begin: ((signal: AbortSignal) => Promise<Unit>) | null = null;
  let voice: string | null = null;
  let recycled = 0;
  let recycling: AbortController | null = null;
  // It answers for its voice while a piece is lost in it.
  const stalls = createStallWatch<Unit>({
    stallMs: options.silenceLimitMs,
    isWatched: () => true,
    look: (unit) => unit.look(),
    onStall: ({ child }) =>
      void child.giveUp(`it had a text to speak, computed nothing for ${limitText} and was ended`),
  });
  let past: Pick<ServerSnapshot, "crashes" | "lastWords"> = { crashes: [], lastWords: "" };

  async function launch(command: VoiceCommand, signal: AbortSignal, isFirst: boolean): Promise<Unit> {
    const child = createServerChild({
      ...options,
      what: "the speech engine",
      // A spare one that comes or goes is no change of the engine's state.
      onChange: () => (isFirst || current?.child === child ? options.onChange() : undefined),
    });
    const unit: Unit = { child, client: null, look: async () => null, speaking: 0, retired: false };
    units.add(unit);
    if (isFirst) current = unit;
    try {
      await child.start(
        { ...command, isReady: async (at, until) => (await detectPiper(at + command.basePath, until)) !== null },
        signal,
      );
      const origin = child.origin() + command.basePath;
      const generation = await detectPiper(origin, signal);
      unit.look = threadProgress(child.snapshot().pid);
      unit.client = createPiperClient({
        origin,
        generation,
        concurrency: piecesAtOnce,
        timeoutMs: pieceTimeoutMs,
        endsWhenLeft: command.endsWhenLeft,
        onOverdue: (why) => void child.giveUp(why),
      });
      return unit;
    } catch (error) {
      await end(unit);
      throw error;
    }
  }

  async function end(unit: Unit): Promise<void> {
    unit.retired = true;
    await unit.client?.close();
    await unit.child.stop();
    units.delete(unit);
  }

  function isWornOut({ client }: Unit): boolean {
    const done = client?.produced();
    return done !== undefined && (done.requests >= options.recycle.requests || done.bytes >= options.recycle.bytes);
  }

  /** The fresh one is ready before the old one goes, so nobody waits for it. */
  async function recycle(old: Unit): Promise<void> {
    if (recycling || !begin || current !== old) return;
    const stopping = new AbortController();
    recycling = stopping;
    try {
      const fresh = await begin(stopping.signal);
      // It was stopped meanwhile, or its end was noticed and it was started again.
      if (current !== old || stopping.signal.aborted) {
        await end(fresh);
        return;
      }
      past = { crashes: merged().crashes, lastWords: merged().lastWords };
      current = fresh;
      recycled++;
      old.retired = true;
      if (old.speaking === 0) await end(old);
    } catch (error) {
      // The old one goes on; the next piece tries again.
      if (!stopping.signal.aborted)
        options.warn("the speech engine could not be renewed", { error: toGatewayError(error).message });
    } finally {
      recycling = null;
    }
  }

  function merged(): ServerSnapshot {
    const now = current?.child.snapshot();
    return {
      phase: now?.phase ?? "stopped",
      pid: now?.pid ?? null,
      crashes: [...past.crashes, ...(now?.crashes ?? [])].slice(-20),
      lastWords: now?.lastWords || past.lastWords,
      silentSince: now?.silentSince ?? null,
    };
  }

  return {
    snapshot: () => ({ ...merged(), voice, recycled }),
    start: async (name, command, signal) => {
      if (merged().phase !== "stopped") throw new GatewayError("internal", "the speech engine runs already");
      past = { crashes: merged().crashes, lastWords: merged().lastWords };
      voice = name;
      begin = (until) => launch(command, until, false);
      await launch(command, signal, true);
    },
    stop: async () => {
      recycling?.abort();
      begin = null;
      const ending = [...units];
      await Promise.all(ending.map(end));
      past = { ...past, lastWords: "" };
    },
    check: (piece) => current?.client?.check(piece),
    speak: async (piece, signal) => {
      const unit = current;
      if (!unit?.client || unit.child.snapshot().phase !== "ready") {
        throw new GatewayError("engine_failed", `the speech engine is ${merged().phase}`);
      }
      unit.speaking++;
      const noLongerAwaited = stalls.begin(unit);
      try {
        // It has one voice and is not told which: asked for one that it does not know it would take another.
        const sound = await unit.client.speak({ ...piece, voice: null }, signal);
        stalls.sign(unit);
        return sound;
      } catch (error) {
        // What broke off has a cause. Whoever asks again at once must find that it has ended.
        if (error instanceof GatewayError && error.code === "upstream_failed" && error.cause !== undefined)
          await unit.child.ended(endedWithinMs);
        throw error;
      } finally {
        noLongerAwaited();
        unit.speaking--;
        if (unit.retired && unit.speaking === 0) void end(unit);
        else if (isWornOut(unit)) void recycle(unit);
      }
    },
  };
}
