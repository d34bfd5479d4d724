// Changes of models: drains, and unloads on request.
import { GatewayError } from "../core/errors.ts";
import type { Instance } from "../engines/llama/instances.ts";
import type { Router } from "../engines/llama/router.ts";
import type { Drainer } from "../execute/router-actions.ts";
import type { Handlers, Runner } from "./run.ts";

export function createChanges(
  { send }: Runner,
  options: {
    readonly router: Router;
    readonly instance: (id: string) => Instance | null;
    /** A drain has ended; `cut` answers had not. */
    readonly onDrained: (id: string, cut: number) => void;
  },
) {
  const drained = new Map<number, () => void>();
  const unloaded = new Map<string, ((error: GatewayError | null) => void)[]>();
  let drains = 0;

  /** Ends a model that can never answer again, without waiting for its answers. */
  function abandon(id: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = (error: GatewayError | null): void => (error ? reject(error) : resolve());
      unloaded.set(id, [...(unloaded.get(id) ?? []), over]);
      send({ kind: "unload", id });
    });
  }

  const drain: Drainer["drain"] = (models, signal) => {
    const number = ++drains;
    return new Promise((resolve, reject) => {
      const end = (): void => send({ kind: "drainOver", drain: number });
      // The change is not wanted any more, or the gateway stops: then no answer is cut.
      const onAbort = (): void => {
        drained.delete(number);
        end();
        reject(
          signal.reason instanceof GatewayError
            ? signal.reason
            : new GatewayError("cancelled", "the change was cancelled"),
        );
      };
      if (signal.aborted) return onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      drained.set(number, () => {
        signal.removeEventListener("abort", onAbort);
        resolve(end);
      });
      send({ kind: "drainBegan", drain: number, models });
    });
  };

  /** Unloads a model once its answers in flight have ended; its new requests wait until the work is over. */
  async function whileUnloaded<T>(id: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const end = await drain([id], signal);
    try {
      await abandon(id);
      return await work();
    } finally {
      end();
    }
  }

  const changes = {
    drain,
    abandon,
    whileUnloaded,
    /** Unloads a model once its answers in flight have ended. */
    unload: (id: string, signal: AbortSignal): Promise<void> => whileUnloaded(id, signal, async () => undefined),
    /** An instance takes no connections: unloads it, unless it is gone already. */
    replace: async ({ id, origin }: Instance): Promise<void> => {
      await options.router.refresh();
      // A process that lost its listener but lives stays `loaded` for the router; unloading cures it.
      if (options.instance(id)?.origin === origin && options.router.isReady()) await abandon(id);
    },
  };
  const handlers: Pick<Handlers, "drained" | "unloaded"> = {
    drained: ({ drain: number, cut }) => {
      for (const [id, count] of cut) options.onDrained(id, count);
      drained.get(number)?.();
      drained.delete(number);
    },
    unloaded: ({ id, error }) => {
      const callers = unloaded.get(id) ?? [];
      unloaded.delete(id);
      for (const over of callers) over(error);
    },
  };
  return { changes, handlers };
}
