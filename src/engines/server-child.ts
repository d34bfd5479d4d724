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
  /** How it ended by itself the last time, and what it said. */
  readonly lastWords: string;
}

/** What is started, and how. */
export interface ServerCommand {
  /** Absolute. */
  readonly path: string;
  args(port: number): readonly string[];
  readonly workingDir: string;
  /** Beside what every engine gets. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether the server at `http://127.0.0.1:PORT` can be used; false or an error: not yet. */
  isReady(origin: string, signal: AbortSignal): Promise<boolean>;
}

export interface ServerChild {
  snapshot(): ServerSnapshot;
  /** Resolves when it is ready. Throws `engine_missing`, `engine_failed` with its last words, `shutting_down`. */
  start(command: ServerCommand, signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
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
  readonly now: () => number;
  readonly onOutput: (text: string) => void;
  /** Called at every change of its state. */
  readonly onChange: () => void;
}

interface Running {
  readonly process: ManagedProcess;
  readonly origin: string;
}

const lookAgainMs = 20;

export function createServerChild(options: ServerChildOptions): ServerChild {
  const { what } = options;
  let phase: ServerSnapshot["phase"] = "stopped";
  let running: Running | null = null;
  let crashes: readonly number[] = [];
  let lastWords = "";

  function becomes(next: ServerSnapshot["phase"]): void {
    phase = next;
    options.onChange();
  }

  function onExit(ended: Running, exit: ProcessExit): void {
    if (running !== ended) return;
    running = null;
    if (phase === "ready") crashes = [...crashes.slice(-20), options.now()];
    if (phase !== "stopping") lastWords = `${exitText(exit)}: ${ended.process.lastWords()}`;
    becomes("stopped");
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
    snapshot: () => ({ phase, pid: running?.process.pid ?? null, crashes, lastWords }),
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
        current = { process, origin: `http://127.0.0.1:${port}` };
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
      becomes("ready");
    },
    stop: async () => {
      const current = running;
      if (!current) return;
      becomes("stopping");
      onExit(current, await current.process.stop(options.stopGraceMs));
    },
  };
}
