// Why something is not as the document says: failed actions, and what the plan could not do. Pure.
import { followedBy } from "../core/sentences.ts";
import type { Desired } from "../desired/document/document.ts";
import { type Action, type BackoffEntry, backoffKey } from "../plan/actions.ts";
import { sourceState } from "../plan/model-files.ts";
import { findCached, type Observed } from "../plan/observed.ts";

export function failureOf(
  backoff: ReadonlyMap<string, BackoffEntry>,
  kind: Action["kind"],
  key: string,
): BackoffEntry | undefined {
  return backoff.get(backoffKey({ kind, key }));
}

export function explain({ message, hint }: BackoffEntry): string {
  return followedBy(message, hint);
}

/** The reason for a finding of the plan, by the model's id in the cache. */
export function reasonOf(cachedId: string, { models }: Desired, observed: Observed): "SourceMissing" | "CannotApply" {
  const { cache } = observed;
  const isGone = models.some(
    (model) =>
      cache.state === "known" &&
      findCached(cache.value.models, model.id)?.id === cachedId &&
      sourceState(model, observed) === "missing",
  );
  return isGone ? "SourceMissing" : "CannotApply";
}
