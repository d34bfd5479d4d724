// The names of a cached model in the document, and when a call may add one.
import { GatewayError } from "../core/errors.ts";
import type { Desired, DesiredModel } from "../desired/document/document.ts";
import { findCached } from "../plan/find-model.ts";
import type { CachedModel } from "../plan/observed.ts";
import { isMarked, leavingSince, pathInRepo } from "../plan/removals.ts";
import type { Pass } from "../reconcile/loop.ts";

/** By the last snapshot of the cache. */
export function namesInDocument(models: readonly DesiredModel[], model: CachedModel, pass: Pass | null): string[] {
  const cache = pass?.observed.cache;
  const cached = cache?.state === "known" ? cache.value.models : [model];
  return models.filter(({ id }) => findCached(cached, id)?.id === model.id).map(({ id }) => id);
}

/** Its ids there, else its own, which adopts it. Inside the edit: naming a model cancels its removal. Errors: `model_not_found`. */
export function keysToSet(document: Desired, model: CachedModel, pass: Pass | null): readonly string[] {
  if (document.removals.some((removal) => isMarked(removal, model))) throw leavingError(model);
  const named = namesInDocument(document.models, model, pass);
  if (named.length > 0) return named;
  if (isLeaving(document, model, pass) || isBeingDeleted(model, pass)) throw leavingError(model);
  return [model.id];
}

/** Whether it is to be deleted, or has gone. */
export function isLeaving(document: Desired, model: CachedModel, pass: Pass | null): boolean {
  if (leavingSince(document, pass?.desired.document ?? null)(model)) return true;
  const cache = pass?.observed.cache;
  return cache?.state === "known" && !cache.value.models.some((other) => isSameFile(other, model));
}

/** Prunes too: naming the model does not cancel one that has begun. */
function isBeingDeleted({ upstreamId }: CachedModel, pass: Pass | null): boolean {
  const running = pass?.running ?? [];
  return running.some(({ action }) => action.kind === "model.remove" && action.disrupts.includes(upstreamId));
}

export function leavingError({ id }: CachedModel): GatewayError {
  return new GatewayError("model_not_found", `model '${id}' not found: it has been removed`);
}

/** Its id may be another model's by now. */
function isSameFile(a: CachedModel, b: CachedModel): boolean {
  return a.id === b.id && a.repo === b.repo && firstPath(a) === firstPath(b);
}

function firstPath(model: CachedModel): string {
  return pathInRepo(model, model.files[0] ?? "");
}
