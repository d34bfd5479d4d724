// A model in the cache of which nothing but its name and the given facts is known.
import type { CachedModel } from "../../src/plan/observed.ts";

/** `id`: `owner/name:tag`. The router does not list it. */
export function cachedModel(id: string, facts: Partial<CachedModel> = {}): CachedModel {
  const [repo = "", tag = ""] = id.split(":");
  return {
    id,
    repo,
    tag,
    aliases: [],
    routerId: null,
    upstreamId: "",
    commit: "",
    files: [],
    blobs: [],
    bytes: 1,
    complete: true,
    damage: null,
    projector: null,
    nCtxTrain: null,
    modifiedAt: 0,
    digest: null,
    architecture: null,
    fileType: null,
    sizeLabel: null,
    pooling: null,
    ...facts,
  };
}
