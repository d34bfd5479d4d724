// Locates llama-server, and installs it if there is none.
import { execFile } from "node:child_process";
import { open, stat } from "node:fs/promises";
import { promisify } from "node:util";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { BinaryState } from "../../plan/observed.ts";
import { type InstallProgress, installEngine } from "../install/install.ts";
import { locateEngine } from "../install/locate.ts";
import { engineEnvironment } from "../process/engine-environment.ts";

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
  let stamp: string | null = null;
  let prepared = false;
  let preparation: Promise<void> = Promise.resolve();

  async function find(signal?: AbortSignal): Promise<boolean> {
    const located = await locateEngine("llama-server", where);
    if (located === null) return false;
    stamp = await stampOf(located);
    if (await isForAnotherMachine(located))
      throw new GatewayError("engine_missing", `${located} is a program for another kind of machine`);
    knownOptions = await readKnownOptions(located, engineEnvironment(options.environment, {}), signal);
    path = located;
    binary = "present";
    return true;
  }

  /** An upgrade may leave the old file in place and point the name on PATH to another one. */
  async function isStillChosen(): Promise<boolean> {
    const located = await locateEngine("llama-server", where).catch(() => null);
    return located === path;
  }

  async function prepare(signal: AbortSignal): Promise<void> {
    failure = null;
    try {
      const { enginesDir, environment, onProgress } = options;
      if (!(await find(signal)) && options.install) {
        binary = "installing";
        options.onChange();
        await installEngine("llama", { enginesDir, environment, signal, onProgress });
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
      const error = failure ?? new GatewayError("engine_missing", "no llama-server was found");
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

/** Class, byte order and machine of a Linux program; null where it is none, or cannot be read. */
async function kindOf(path: string): Promise<string | null> {
  const file = await open(path, "r").catch(() => null);
  if (!file) return null;
  try {
    const head = Buffer.alloc(20);
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    if (bytesRead < head.length || head.toString("latin1", 0, 4) !== "\x7fELF") return null;
    return `${head[4]} ${head[5]} ${head.toString("hex", 18, 20)}`;
  } catch {
    return null;
  } finally {
    await file.close();
  }
}

/**
 * The system's own error misleads: it runs an unknown program as a shell script, which fails with a line about a command that was
 * not found. False also for scripts and unknown files: then the start decides.
 */
async function isForAnotherMachine(path: string): Promise<boolean> {
  const kind = await kindOf(path);
  const own = await kindOf(process.execPath);
  return kind !== null && own !== null && kind !== own;
}

/** Keys of the preset file that are no command line options. */
const presetOnly = ["load-on-startup", "stop-timeout", "dedup-cache-models"];

/**
 * The options that an engine has, so that the preset file never holds one that would end the router: every spelling without dashes (`ctx-size`, `c`, `LLAMA_ARG_CTX_SIZE`); null where
 * the help text could not be read.
 */
async function readKnownOptions(
  path: string,
  environment: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Promise<ReadonlySet<string> | null> {
  try {
    const { stdout } = await promisify(execFile)(path, ["--help"], {
      env: environment,
      timeout: 10_000,
      maxBuffer: 4 << 20,
      ...(signal === undefined ? {} : { signal }),
    });
    return parseHelp(stdout);
  } catch {
    return null;
  }
}

export function parseHelp(help: string): ReadonlySet<string> | null {
  const keys = new Set(presetOnly);
  for (const line of help.split("\n")) {
    const variable = /\(env: (LLAMA_[A-Z0-9_]+)\)/.exec(line)?.[1];
    if (variable !== undefined) keys.add(variable);
    // Options stand at a line's start: `-c,    --ctx-size N   size of …`; what follows in the text may name others.
    if (!line.startsWith("-")) continue;
    for (const match of line.matchAll(/(?:^|,\s*)--?([A-Za-z][A-Za-z0-9-]*)/g)) keys.add(match[1] ?? "");
  }
  return keys.has("ctx-size") ? keys : null;
}
