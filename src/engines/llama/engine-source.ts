// Locates llama-server, and installs it if there is none.
import { stat } from "node:fs/promises";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { BinaryState } from "../../plan/observed.ts";
import { type InstallProgress, installEngine } from "../install/install.ts";
import { locateEngine, whyNone } from "../install/locate.ts";
import { rehomeEngines } from "../install/rehome.ts";
import { engineEnvironment } from "../process/engine-environment.ts";
import { isForAnotherMachine } from "../process/machine.ts";
import { readKnownOptions } from "./known-options.ts";

export interface EngineSource {
  state(): { readonly binary: BinaryState; readonly knownOptions: ReadonlySet<string> | null };
  path(): string | null;
  /** Why there is none, after a search. */
  problem(): { readonly reason: string; readonly message: string } | null;
  /** Finds the engine, or installs it where that is allowed; never throws, see {@link EngineSource.problem}. */
  prepare(signal: AbortSignal): Promise<void>;
  /** Resolves once the current preparation, if any, has ended. */
  settled(): Promise<void>;
  /** Detects an engine that was added, removed or replaced; true if another one is worth a new try. */
  look(): Promise<boolean>;
}

export interface EngineSourceOptions {
  readonly explicit: string | undefined;
  readonly enginesDir: string;
  /** What installs it. */
  readonly installCommand: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly install: boolean;
  /** Whether engines that were moved with their folder are repaired. */
  readonly rehome: boolean;
  readonly onProgress: (progress: InstallProgress) => void;
  readonly onChange: () => void;
}

export function createEngineSource(options: EngineSourceOptions): EngineSource {
  const where = {
    explicit: options.explicit,
    pathVariable: options.environment["PATH"] ?? "",
    enginesDir: options.enginesDir,
  };
  const byCommand = `Run \`${options.installCommand}\`, or name one with --llama-server.`;
  let path: string | null = null;
  let binary: BinaryState = "missing";
  let knownOptions: ReadonlySet<string> | null = null;
  let failure: GatewayError | null = null;
  let none = "";
  /** Why moved engines do not run. */
  let strays: readonly string[] = [];
  let stamp: string | null = null;
  let prepared = false;
  let preparation: Promise<void> = Promise.resolve();

  async function find(signal?: AbortSignal): Promise<boolean> {
    const located = await locateEngine("llama-server", where);
    if (!located) {
      none = [await whyNone("llama-server", options.enginesDir), ...strays].join("; ");
      return false;
    }
    stamp = await stampOf(located.path);
    if (await isForAnotherMachine(located.path))
      throw new GatewayError("engine_missing", `${located.path} is a program for another kind of machine`);
    knownOptions = await readKnownOptions(located.path, engineEnvironment(options.environment, {}), signal);
    path = located.path;
    binary = "present";
    return true;
  }

  /** An upgrade may leave the old file in place and point the name on PATH to another one. */
  async function isStillChosen(): Promise<boolean> {
    const located = await locateEngine("llama-server", where).catch(() => null);
    return located?.path === path;
  }

  async function prepare(signal: AbortSignal): Promise<void> {
    failure = null;
    try {
      const { enginesDir, environment } = options;
      if (options.rehome) strays = await rehomeEngines(enginesDir, { environment, signal });
      if (!(await find(signal)) && options.install) {
        binary = "installing";
        options.onChange();
        await installEngine("llama", {
          enginesDir,
          environment,
          signal,
          onProgress: options.onProgress,
        });
        binary = "missing";
        await find(signal);
      }
    } catch (error) {
      binary = "missing";
      failure = toGatewayError(error);
    }
    prepared = true;
    options.onChange();
  }

  return {
    state: () => ({ binary, knownOptions }),
    path: () => path,
    problem: () => {
      if (!prepared || binary !== "missing") return null;
      const error = failure ?? new GatewayError("engine_missing", none);
      const hint = error.code === "engine_missing" ? byCommand : error.hint;
      return { reason: error.reason, message: `${error.message}. ${hint}` };
    },
    prepare: (signal) => (preparation = prepare(signal)),
    settled: () => preparation,
    look: async () => {
      if (!prepared || binary === "installing") return false;
      if (path !== null && stamp === (await stampOf(path)) && (await isStillChosen())) return false;
      const before = path;
      path = null;
      binary = "missing";
      try {
        if (await find()) failure = null;
      } catch (error) {
        failure = toGatewayError(error);
      }
      return path !== null || before !== null;
    },
  };
}

/** Tells one build of an executable from the next; null where it is gone. */
async function stampOf(path: string): Promise<string | null> {
  const entry = await stat(path).catch(() => null);
  return entry && `${entry.ino}:${entry.mtimeMs}:${entry.size}`;
}
