// Garbage collection of the model cache: an action like any other, but requested by a call and not by the document.

import { type Collected, previewOf } from "../cache/report/garbage.ts";
import { GatewayError } from "../core/errors.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { Collector } from "../execute/cache-gc.ts";
import type { Executor } from "../execute/executor.ts";
import type { Action } from "../plan/actions.ts";
import type { Call } from "./edits.ts";

export interface CollectDeps {
  readonly store: Pick<DesiredStore, "current">;
  readonly executor: Pick<Executor, "follow" | "submit">;
  readonly collector: Pick<Collector, "look">;
}

/** Errors: `suspended`, `cancelled` if the caller left (it continues), errors of the cache. */
export interface Collect {
  /** What would be deleted. */
  preview(): Promise<Collected>;
  run(call: Pick<Call, "signal">): Promise<Collected>;
}

const key = "cache";

export function createCollect({ store, executor, collector }: CollectDeps): Collect {
  return {
    preview: async () => previewOf((await collector.look()).garbage),
    run: ({ signal }) => {
      if (store.current().document.suspend) throw new GatewayError("suspended", "not done: the document says suspend");
      return new Promise((resolve, reject) => {
        const onAbort = (): void => {
          stop();
          reject(new GatewayError("cancelled", "the client left"));
        };
        const stop = (): void => {
          unfollow();
          signal.removeEventListener("abort", onAbort);
        };
        const unfollow = executor.follow(key, {
          settled: ({ error, collected }) => {
            stop();
            if (error) reject(error);
            else resolve(collected ?? { items: [], skipped: [], deletedFiles: 0, freedBytes: 0 });
          },
        });
        signal.addEventListener("abort", onAbort, { once: true });
        // Asked once more while it goes: the same answer for both.
        executor.submit(collection);
      });
    },
  };
}

const collection: Action = {
  kind: "cache.gc",
  key,
  reason: "CollectionRequested",
  message: "delete what serves nobody in the model cache",
  disrupts: [],
};
