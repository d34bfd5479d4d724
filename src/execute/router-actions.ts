// Starts, reloads and restarts the router, after the responses that it would cut have ended.
import { GatewayError } from "../core/errors.ts";
import type { Router, RouterInputs } from "../engines/llama/router.ts";
import type { Observed } from "../plan/observed.ts";
import type { Handlers } from "./executor.ts";

/** Holds new requests for models and waits for responses in flight. */
export interface Drainer {
  /**
   * Resolves when nothing uses the models, or when the time is up; call the result to let requests in again. Throws what the
   * signal is aborted with: nothing is cut then.
   */
  drain(models: readonly string[] | "all", signal: AbortSignal): Promise<() => void>;
}

export function routerHandlers(options: {
  readonly router: Router;
  readonly drainer: Drainer;
  /** The engine's path; null while there is none. */
  readonly binary: () => string | null;
  /** Whether its models need not fit anything into memory, with this preset. */
  readonly isUnfitted: (preset: string) => Promise<boolean>;
  /** What the router is about to read, as it is now. */
  readonly inputs: () => Promise<RouterInputs>;
  /** The same as the newest pass has seen it: where it was older than what a reload reads, the next pass plans one more. */
  readonly seenInputs: () => RouterInputs;
  readonly observed: () => Observed["router"];
}): Pick<Handlers, "router.start" | "router.reload" | "router.restart"> {
  const { router, drainer } = options;

  async function start(signal: AbortSignal): Promise<void> {
    const binary = options.binary();
    if (binary === null) throw new GatewayError("engine_missing", "no llama-server was found");
    const inputs = await options.inputs();
    await router.start(binary, inputs, signal, await options.isUnfitted(inputs.preset));
  }

  return {
    "router.start": (_action, { signal }) => start(signal),
    "router.reload": async ({ changes }, { signal }) => {
      // Not the loaded ones alone: a model that is just being loaded would be killed in the middle of it.
      const readmit = changes.length > 0 ? await drainer.drain(changes, signal) : () => undefined;
      try {
        await router.reload(options.seenInputs());
        return { seen: { router: options.observed() } };
      } finally {
        readmit();
      }
    },
    "router.restart": async ({ reason }, { signal }) => {
      // Its instances continue without it, as after a crash: no response has to be awaited or cut.
      if (reason === "RouterHung") {
        await router.kill();
        return start(signal);
      }
      const readmit = await drainer.drain("all", signal);
      try {
        await router.stop();
        await start(signal);
      } finally {
        readmit();
      }
    },
  };
}
