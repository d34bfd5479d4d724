// By which names the document means a cached model. Pure.
import type { DesiredModel } from "../../desired/document.ts";
import { type CachedModel, findCached } from "../../plan/observed.ts";
import type { Pass } from "../../reconcile/loop.ts";

/** By the cache as it was last seen. */
export function namesInDocument(models: readonly DesiredModel[], model: CachedModel, pass: Pass | null): string[] {
  const cache = pass?.observed.cache;
  const cached = cache?.state === "known" ? cache.value.models : [model];
  return models.filter(({ id }) => findCached(cached, id)?.id === model.id).map(({ id }) => id);
}
