// Locates llama-server, and installs it if there is none.
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { promisify } from "node:util";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { BinaryState } from "../../plan/observed.ts";
import type { InstallProgress } from "../install/build.ts";
import { locateEngine } from "../install/locate.ts";
import { engineEnvironment } from "../process/engine-environment.ts";
import { listDevices } from "./devices.ts";

export type EngineSource = ReturnType<typeof createEngineSource>;

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

interface Found {
  readonly path: string;
  /** See {@link stampOf}. */
  readonly stamp: string | null;
  readonly knownOptions: ReadonlySet<string> | null;
}

export function createEngineSource(options: EngineSourceOptions) {
  const { explicit, enginesDir, environment, onProgress, onChange } = options;
  const where = { explicit, pathVariable: environment["PATH"] ?? "", enginesDir };
  let found: Found | null = null;
  /** One that has computed with more than main memory. */
  let withDevices: Found | null = null;
  /** Why there is none. */
  let failure: GatewayError | null = null;
  let isInstalling = false;
  let isPrepared = false;
  let preparation: Promise<void> = Promise.resolve();

  async function find(signal?: AbortSignal): Promise<Found | null> {
    const path = await locateEngine("llama-server", where);
    if (path === null) return null;
    const stamp = await stampOf(path);
    const knownOptions = await readKnownOptions(path, engineEnvironment(environment, {}), signal);
    return { path, stamp, knownOptions };
  }

  async function prepare(signal: AbortSignal): Promise<void> {
    try {
      found = await find(signal);
      if (!found && options.install) {
        isInstalling = true;
        onChange();
        // Commands that only look for an engine do without what downloads one.
        const { installEngine } = await import("../install/install.ts");
        await installEngine("llama", { enginesDir, environment, signal, onProgress });
        found = await find(signal);
      }
      failure = found ? null : absent();
    } catch (error) {
      failure = toGatewayError(error);
    }
    isInstalling = false;
    isPrepared = true;
    onChange();
  }

  /** An upgrade may leave the old file in place and point the name on PATH to another one. */
  async function isUnchanged({ path, stamp }: Found): Promise<boolean> {
    const located = await locateEngine("llama-server", where).catch(() => null);
    return located === path && stamp === (await stampOf(path));
  }

  function binaryState(): BinaryState {
    if (isInstalling) return "installing";
    return found ? "present" : "missing";
  }

  return {
    state: () => ({ binary: binaryState(), build: found?.stamp ?? "", knownOptions: found?.knownOptions ?? null }),
    path: () => found?.path ?? null,
    /** Whether it says that there is no device but main memory. Asked at each start of the router: a driver may have come by then. */
    isAlone: async (): Promise<boolean> => {
      const asked = found;
      const canSay = ["fit", "list-devices"].every((option) => asked?.knownOptions?.has(option));
      if (!asked || !canSay || withDevices === asked) return false;
      const devices = await listDevices(asked.path, environment).catch(() => null);
      if (devices && devices.length > 0) withDevices = asked;
      return devices?.length === 0;
    },
    /** Why there is none, after a search. */
    problem: (): { readonly reason: string; readonly message: string } | null => {
      if (!isPrepared || isInstalling || !failure) return null;
      const byCommand = `Run \`${options.installCommand}\`, or name one with --llama-server.`;
      const hint = failure.code === "engine_missing" ? byCommand : failure.hint;
      return { reason: failure.reason, message: `${failure.message}. ${hint}` };
    },
    /** Finds the engine, or installs it where that is allowed; never throws, see `problem`. */
    prepare: (signal: AbortSignal) => (preparation = prepare(signal)),
    /** Resolves once the current preparation, if any, has ended. */
    settled: () => preparation,
    /** Detects an engine that was added, removed or replaced; true if another one is worth a new try. */
    look: async (): Promise<boolean> => {
      const before = found;
      if (!isPrepared || isInstalling || (before && (await isUnchanged(before)))) return false;
      try {
        found = await find();
        // The error of an installation explains more than that there is still none.
        failure = found ? null : (failure ?? absent());
      } catch (error) {
        found = null;
        failure = toGatewayError(error);
      }
      return found !== null || before !== null;
    },
  };
}

function absent(): GatewayError {
  return new GatewayError("engine_missing", "no llama-server was found");
}

/** Tells one build of an executable from the next; null where it is gone. */
async function stampOf(path: string): Promise<string | null> {
  const entry = await stat(path).catch(() => null);
  return entry && `${entry.ino}:${entry.mtimeMs}:${entry.size}`;
}

/** Keys of the preset file that are no command line options. */
const presetOnly = ["load-on-startup", "stop-timeout", "dedup-cache-models"];

/** In every spelling, without dashes (`ctx-size`, `c`, `LLAMA_ARG_CTX_SIZE`): any other ends the router. Null: no help text. */
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
