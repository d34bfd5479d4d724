// A speech engine as a supervised child that serves HTTP on a loopback port of ours: started, watched, ended.
// Knows no engine: what to start and how it shows that it is ready comes in. Decides nothing.
import { GatewayError } from "../core/errors.ts";
import { engineEnvironment } from "./engine-environment.ts";
import { freePort } from "./free-port.ts";
import { markerName, markerValue } from "./leftovers.ts";
import { exitText, type ManagedProcess, type ProcessExit, startProcess } from "./managed-process.ts";

export interface ServerSnapshot {
  readonly phase: "stopped" | "starting" | "ready" | "stopping";
  readonly pid: number | null;
  /** When it ended by itself after it had been ready, ms; the latest last. */
  readonly crashes: readonly number[];
  /** How it ended by itself the last time, and what it said; empty after an end that was asked for. */
  readonly lastWords: string;
  /** Since when (ms) a ready one has not answered; null while it does. */
  readonly silentSince: number | null;
}

/** What is started, and how. */
export interface ServerCommand {
  /** Absolute. */
  readonly path: string;
  args(port: number): readonly string[];
  readonly workingDir: string;
  /** Beside what every engine gets. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether the server at `http://127.0.0.1:PORT` can be used; an error: it does not answer. Asked as long as it runs. */
  isReady(origin: string, signal: AbortSignal): Promise<boolean>;
}

export interface ServerChild {
  snapshot(): ServerSnapshot;
  /** Resolves when it is ready. Throws `engine_missing`, `engine_failed` with its last words, `shutting_down`. */
  start(command: ServerCommand, signal: AbortSignal): Promise<void>;
  /** TERM, and KILL after the grace. */
  stop(graceMs?: number): Promise<void>;
  /** KILL to one that hangs: it counts as a crash, with `why` as its last words. */
  giveUp(why: string): Promise<void>;
  /** Resolves when its end has been noticed, or after so many ms: a connection breaks off a moment before. */
  ended(withinMs: number): Promise<void>;
  /** Where it listens. Throws `engine_failed` while it is not ready. */
  origin(): string;
  /** What it wrote last, while it runs. */
  words(): string;
}

export interface ServerChildOptions {
  /** In messages: `the transcription engine`. */
  readonly what: string;
  readonly stateDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly startTimeoutMs: number;
  readonly stopGraceMs: number;
  /** ms without an answer after which a ready one counts as hanging and is ended. */
  readonly silenceLimitMs: number;
  readonly now: () => number;
  readonly onOutput: (text: string) => void;
  /** Called at every change of its state. */
  readonly onChange: () => void;
}

interface Running {
  readonly process: ManagedProcess;
  readonly origin: string;
  /** Why we ended it; null: it ended by itself, or is to end. */
  givenUp: string | null;
}

const lookAgainMs = 20;
const shortestPingMs = 100;

export function createServerChild(options: ServerChildOptions): ServerChild {
  const { what } = options;
  let phase: ServerSnapshot["phase"] = "stopped";
  let running: Running | null = null;
  let crashes: readonly number[] = [];
  let lastWords = "";
  let silentSince: number | null = null;

  function becomes(next: ServerSnapshot["phase"]): void {
    phase = next;
    options.onChange();
  }

  function onExit(ended: Running, exit: ProcessExit): void {
    if (running !== ended) return;
    running = null;
    silentSince = null;
    if (phase === "ready") crashes = [...crashes.slice(-20), options.now()];
    lastWords = phase === "stopping" ? "" : (ended.givenUp ?? `${exitText(exit)}: ${ended.process.lastWords()}`);
    becomes("stopped");
  }

  /** A server that hangs says nothing about it: connections to it are taken, and nothing comes back. */
  function startPinging(current: Running, command: ServerCommand): void {
    const everyMs = Math.max(shortestPingMs, options.silenceLimitMs / 4);
    const timer = setInterval(() => void ping(current, command, everyMs), everyMs);
    timer.unref();
    void current.process.exited.then(() => clearInterval(timer));
  }

  async function ping(current: Running, command: ServerCommand, timeoutMs: number): Promise<void> {
    const isWatched = (): boolean => running === current && phase === "ready";
    if (!isWatched()) return;
    const askedAt = options.now();
    const answers = await command.isReady(current.origin, AbortSignal.timeout(timeoutMs)).then(
      () => true,
      () => false,
    );
    if (!isWatched() || (answers && silentSince === null)) return;
    const isNews = answers || silentSince === null;
    silentSince = answers ? null : (silentSince ?? askedAt);
    if (isNews) options.onChange();
    if (silentSince !== null && options.now() - silentSince >= options.silenceLimitMs)
      await giveUp(current, `it did not answer for ${Math.round(options.silenceLimitMs / 1000)} s and was ended`);
  }

  async function giveUp(current: Running, why: string): Promise<void> {
    current.givenUp ??= why;
    onExit(current, await current.process.stop(0));
  }

  async function untilReady(current: Running, command: ServerCommand, signal: AbortSignal): Promise<void> {
    const deadline = options.now() + options.startTimeoutMs;
    for (;;) {
      const ready = await command.isReady(current.origin, signal).catch(() => false);
      // Whoever answers on the port of a process that has ended is somebody else. Its exit code tells nothing: 0 is
      // what whisper-server ends with where ffmpeg is missing.
      if (current.process.hasExited())
        throw new GatewayError("engine_failed", `${what} ended while starting: ${current.process.lastWords()}`);
      if (signal.aborted) throw new GatewayError("shutting_down", `stopped while ${what} was starting`);
      if (ready) return;
      if (options.now() > deadline) {
        const words = current.process.lastWords();
        throw new GatewayError("engine_failed", `${what} was not ready within ${options.startTimeoutMs} ms: ${words}`);
      }
      await Promise.race([current.process.exited, new Promise((resolve) => setTimeout(resolve, lookAgainMs))]);
    }
  }

  return {
    snapshot: () => ({ phase, pid: running?.process.pid ?? null, crashes, lastWords, silentSince }),
    words: () => running?.process.lastWords() ?? lastWords,
    origin: () => {
      if (running && phase === "ready") return running.origin;
      throw new GatewayError("engine_failed", phase === "stopped" ? `${what} is not running` : `${what} is ${phase}`);
    },
    start: async (command, signal) => {
      if (phase !== "stopped") throw new GatewayError("internal", `${what} is ${phase} already`);
      becomes("starting");
      let current: Running;
      try {
        const port = await freePort();
        const process = await startProcess({
          path: command.path,
          args: command.args(port),
          environment: engineEnvironment(options.environment, {
            ...command.environment,
            [markerName]: markerValue(options.stateDir),
          }),
          workingDir: command.workingDir,
          onOutput: options.onOutput,
        });
        current = { process, origin: `http://127.0.0.1:${port}`, givenUp: null };
      } catch (error) {
        becomes("stopped");
        throw error;
      }
      running = current;
      void current.process.exited.then((exit) => onExit(current, exit));
      try {
        await untilReady(current, command, signal);
      } catch (error) {
        if (running === current) phase = "stopping";
        onExit(current, await current.process.stop(options.stopGraceMs));
        throw error;
      }
      if (running !== current) throw new GatewayError("engine_failed", `${what} ended while starting: ${lastWords}`);
      startPinging(current, command);
      becomes("ready");
    },
    stop: async (graceMs = options.stopGraceMs) => {
      const current = running;
      if (!current) return;
      becomes("stopping");
      onExit(current, await current.process.stop(graceMs));
    },
    giveUp: async (why) => {
      if (running && phase === "ready") await giveUp(running, why);
    },
    ended: async (withinMs) => {
      if (!running) return;
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise((resolve) => {
        timer = setTimeout(resolve, withinMs);
      });
      await Promise.race([running.process.exited, late]);
      clearTimeout(timer);
    },
  };
}
