// Garbage collection of the model cache: an action like any other, but requested by a call and not by the document.
import type { Collected } from "../cache/report/garbage.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { Executor } from "../execute/executor.ts";
import type { Action } from "../plan/actions.ts";
import { actionDone, suspended } from "./in-force.ts";

export interface CollectDeps {
  readonly store: Pick<DesiredStore, "current">;
  readonly executor: Pick<Executor, "submit" | "follow" | "cancel" | "running">;
}

const collection: Action = {
  kind: "cache.gc",
  key: "cache",
  reason: "CollectionRequested",
  message: "delete unused files of the model cache",
  disrupts: [],
};

/** Calls at the same time have the same result. Errors: `suspended`, `cancelled` if the caller left (it continues), of the cache. */
export async function collect({ store, executor }: CollectDeps, signal: AbortSignal): Promise<Collected> {
  if (store.current().document.suspend) throw suspended(collection.message);
  const { collected } = await actionDone(executor, collection, signal, "continue");
  return collected ?? { items: [], skipped: [], deletedFiles: 0, freedBytes: 0 };
}
