// What the newest look at the cache, and the document, say of a model that the router knows by its own id. Starts nothing.
import type { Desired } from "../desired/document/document.ts";
import { type CachedModel, findCached } from "../plan/observed.ts";
import type { Pass } from "../reconcile/loop.ts";

export interface CachedFacts {
  /** Whether the cache still holds it, as far as anybody knows. */
  isCached(upstreamId: string): boolean;
  /** Whether the document keeps it loaded. */
  isPinned(upstreamId: string): boolean;
  modelOf(upstreamId: string): CachedModel | undefined;
  /** Its own id. */
  idOf(upstreamId: string): string;
  /** Changes with its file; null: nobody knows just now. */
  fileOf(upstreamId: string): string | null;
}

export function createCachedFacts(lastPass: () => Pass | null, document: () => Desired): CachedFacts {
  let models: readonly CachedModel[] = [];

  /** While the cache cannot be read, what it held a moment ago is the best that anybody knows. */
  function known(): readonly CachedModel[] {
    const cache = lastPass()?.observed.cache;
    if (cache?.state === "known") models = cache.value.models;
    return models;
  }

  function find(upstreamId: string): CachedModel | undefined {
    return known().find((model) => model.upstreamId === upstreamId);
  }

  return {
    isCached: (upstreamId) => lastPass()?.observed.cache.state !== "known" || find(upstreamId) !== undefined,
    isPinned: (upstreamId) =>
      document().models.some(({ id, pinned }) => pinned === true && findCached(known(), id)?.upstreamId === upstreamId),
    modelOf: find,
    idOf: (upstreamId) => find(upstreamId)?.id ?? upstreamId,
    fileOf: (upstreamId) => {
      const model = find(upstreamId);
      if (!model) return null;
      const { files, digest, bytes, modifiedAt, projector } = model;
      return JSON.stringify([files, digest, bytes, modifiedAt, projector]);
    },
  };
}
