// Which llama-server there is, and the installing of one where there is none.
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import type { BinaryState } from "../plan/observed.ts";
import { engineEnvironment } from "./engine-environment.ts";
import { type InstallProgress, installEngine } from "./install/install.ts";
import { readKnownOptions } from "./known-options.ts";
import { locateEngine } from "./locate.ts";

export interface EngineSource {
  state(): { readonly binary: BinaryState; readonly knownOptions: ReadonlySet<string> | null };
  path(): string | null;
  /** Why there is none. */
  problem(): { readonly reason: string; readonly message: string } | null;
  /** Finds the engine, or installs it where that is allowed; never throws, {@link EngineSource.problem} tells. */
  prepare(signal: AbortSignal): Promise<void>;
}

export function createEngineSource(options: {
  readonly explicit: string | undefined;
  readonly enginesDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly install: boolean;
  readonly onProgress: (progress: InstallProgress) => void;
  readonly onChange: () => void;
}): EngineSource {
  const where = { explicit: options.explicit, pathVariable: options.environment["PATH"] ?? "", enginesDir: options.enginesDir };
  let path: string | null = null;
  let binary: BinaryState = "missing";
  let knownOptions: ReadonlySet<string> | null = null;
  let failure: GatewayError | null = null;

  async function find(): Promise<boolean> {
    const located = await locateEngine("llama-server", where);
    if (!located) return false;
    knownOptions = await readKnownOptions(located.path, engineEnvironment(options.environment, {}));
    path = located.path;
    binary = "present";
    return true;
  }

  return {
    state: () => ({ binary, knownOptions }),
    path: () => path,
    problem: () => failure && { reason: failure.reason, message: `${failure.message}. ${failure.hint}` },
    prepare: async (signal) => {
      failure = null;
      try {
        if (!(await find()) && options.install) {
          binary = "installing";
          options.onChange();
          await installEngine("llama", { enginesDir: options.enginesDir, environment: options.environment, signal, onProgress: options.onProgress });
          binary = "missing";
          await find();
        }
      } catch (error) {
        binary = "missing";
        failure = toGatewayError(error);
      }
      options.onChange();
    },
  };
}
