// What the newest pass and the document hold of a model that the router knows by its own id. Starts nothing.
import type { Desired } from "../desired/document/document.ts";
import { type CachedModel, findCached } from "../plan/observed.ts";
import type { Events } from "./events.ts";

export interface CachedFacts {
  /** Whether the cache still holds it, as far as is known. */
  isCached(upstreamId: string): boolean;
  /** Whether the document keeps it loaded. */
  isPinned(upstreamId: string): boolean;
  modelOf(upstreamId: string): CachedModel | undefined;
  /** Its own id. */
  idOf(upstreamId: string): string;
}

export function createCachedFacts(events: Events, document: () => Desired): CachedFacts {
  /** While the cache cannot be read, its last known content is the best there is. */
  let models: readonly CachedModel[] = [];
  let isKnown = false;
  events.on("passed", ({ pass: { observed } }) => {
    isKnown = observed.cache.state === "known";
    if (observed.cache.state === "known") models = observed.cache.value.models;
  });

  function find(upstreamId: string): CachedModel | undefined {
    return models.find((model) => model.upstreamId === upstreamId);
  }

  return {
    isCached: (upstreamId) => !isKnown || find(upstreamId) !== undefined,
    isPinned: (upstreamId) =>
      document().models.some(({ id, pinned }) => pinned === true && findCached(models, id)?.upstreamId === upstreamId),
    modelOf: find,
    idOf: (upstreamId) => find(upstreamId)?.id ?? upstreamId,
  };
}
