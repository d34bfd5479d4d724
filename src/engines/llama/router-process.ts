// One llama-server in router mode: its view of the model cache, its arguments, and its start until it responds.
import { randomBytes } from "node:crypto";
import { mkdir, readdir, readlink, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { stateError } from "../../state/atomic-file.ts";
import { engineEnvironment } from "../process/engine-environment.ts";
import type { EngineOutput } from "../process/engine-logs.ts";
import { freePort } from "../process/free-port.ts";
import { markerName, markerValue } from "../process/leftovers.ts";
import { type ManagedProcess, startProcess } from "../process/managed-process.ts";
import { untilReady } from "../process/server-process.ts";
import { createRouterClient, type RouterClient } from "./router-client.ts";

export interface RouterProcess {
  readonly process: ManagedProcess;
  readonly client: RouterClient;
  /** Bearer key of this router and its models. */
  readonly key: string;
}

export interface RouterProcessOptions {
  readonly presetPath: string;
  readonly stateDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly startTimeoutMs: number;
  readonly stopGraceMs: number;
  readonly now: () => number;
  /** Chooses a port; a test overrides it. */
  readonly choosePort?: () => Promise<number>;
  readonly onOutput: EngineOutput;
  /** The key must not be in any text that is kept. */
  readonly onKey: (key: string) => void;
}

/** In the state folder. */
export const viewName = "router-cache";

/**
 * Resolves when it responds. Errors: `engine_missing`, `shutting_down`, `engine_failed` with its last output: also where another
 * program has just taken the port, as the next try has another one.
 */
export async function startRouterProcess(
  binary: string,
  /** `isUnfitted`: its models fit nothing into memory where the preset does not say so. */
  options: RouterProcessOptions & { readonly isUnfitted: boolean },
  signal: AbortSignal,
): Promise<RouterProcess> {
  const port = await (options.choosePort ?? freePort)();
  const key = randomBytes(24).toString("base64url");
  options.onKey(key);
  const process = await startProcess({
    path: binary,
    args: routerArguments(port, options.presetPath),
    environment: engineEnvironment(options.environment, {
      LLAMA_API_KEY: key,
      // Relative to its working folder, which remains after the state folder is moved away: models still load.
      HF_HUB_CACHE: viewName,
      // A model whose worker is lost aborts, and would have a debugger print its stack before it ends.
      GGML_NO_BACKTRACE: "1",
      ...(options.isUnfitted && { LLAMA_ARG_FIT: "off" }),
      [markerName]: markerValue(options.stateDir),
    }),
    workingDir: options.stateDir,
    onOutput: options.onOutput,
  });
  const client = createRouterClient(`http://127.0.0.1:${port}`, key);
  try {
    // A healthy response may come from another program on the port: only our router takes our key.
    const isReady = async (): Promise<boolean> => (await client.healthy()) && (await client.models()) !== null;
    await untilReady("the router", process, isReady, options, signal, (output) => output);
  } catch (error) {
    await process.stop(options.stopGraceMs);
    throw error;
  }
  return { process, client, key };
}

/** A context size would override every preset; a limit of models would evict one whose responses bypass the router. */
function routerArguments(port: number, presetPath: string): string[] {
  const address = ["--host", "127.0.0.1", "--port", String(port)];
  return [...address, "--models-preset", presetPath, "--models-max", "0", "--no-models-autoload", "--no-webui"];
}

/** Links to the folders that can be read whole: llama-server exits at the first entry of its cache that it cannot read. */
export async function showRepos(view: string, cacheDir: string, repos: readonly string[]): Promise<void> {
  try {
    // Not the folders above it: a state folder that was moved away came back empty, made by a reload that was under way.
    await mkdir(view).catch((error: unknown) => {
      if (systemCode(error) !== "EEXIST") throw error;
    });
    const shown = new Set(repos);
    for (const name of await readdir(view)) {
      const link = join(view, name);
      const isRight = shown.has(name) && (await readlink(link).catch(() => null)) === join(cacheDir, name);
      if (isRight) shown.delete(name);
      else await rm(link);
    }
    // A junction needs no rights on Windows; elsewhere the type means nothing.
    for (const name of shown) await symlink(join(cacheDir, name), join(view, name), "junction");
  } catch (error) {
    throw stateError(view, error);
  }
}
