// Models by the names that the document, the router and clients have for them. Pure. Indexed, as the lists are searched for each
// model of a document, several times, and in each chat.
import { plainestEndingIn } from "../core/ids.ts";
import type { CachedModel, Observed, RouterModel, RouterSnapshot } from "./observed.ts";

/** By the router's id. Undefined also while the list is not known. */
export function findListed(models: RouterSnapshot["models"], id: string): RouterModel | undefined {
  if (models.state === "unknown") return undefined;
  const byId = listedById.get(models.value) ?? new Map(models.value.map((model) => [model.id, model]));
  listedById.set(models.value, byId);
  return byId.get(id);
}

const listedById = new WeakMap<readonly RouterModel[], ReadonlyMap<string, RouterModel>>();

/** The cached model that the router has under an id; of several a complete one. */
export function findRouted(models: readonly CachedModel[], upstreamId: string): CachedModel | undefined {
  return indexed(models).byUpstreamId.get(upstreamId);
}

/** The cached model that a desired id means: its own id, or another name of it, or the end of one, ignoring case. */
export function findCached(models: readonly CachedModel[], id: string): CachedModel | undefined {
  const folded = id.toLowerCase();
  const { byName, byRepo } = indexed(models);
  return byName.get(folded) ?? plainestEndingIn(byRepo.get(folded.slice(0, folded.indexOf(":"))) ?? [], id);
}

/** Undefined also while the cache is not known. */
export function cachedIn({ cache }: Pick<Observed, "cache">, id: string): CachedModel | undefined {
  return cache.state === "known" ? findCached(cache.value.models, id) : undefined;
}

const indexes = new WeakMap<readonly CachedModel[], ReturnType<typeof indexOf>>();

function indexed(models: readonly CachedModel[]): ReturnType<typeof indexOf> {
  const index = indexes.get(models) ?? indexOf(models);
  indexes.set(models, index);
  return index;
}

function indexOf(models: readonly CachedModel[]) {
  // An id counts before an alias, and of several models the first: what counts is entered last.
  const reversed = models.toReversed();
  const aliases = reversed.flatMap((model) => model.aliases.map((alias) => [alias.toLowerCase(), model] as const));
  const byName = new Map([...aliases, ...reversed.map((model) => [model.id.toLowerCase(), model] as const)]);
  const byRepo = new Map<string, CachedModel[]>();
  for (const model of models)
    byRepo.set(model.repo.toLowerCase(), [...(byRepo.get(model.repo.toLowerCase()) ?? []), model]);
  const ofComplete = [false, true].flatMap((wanted) => reversed.filter(({ complete }) => complete === wanted));
  const byUpstreamId = new Map(ofComplete.map((model) => [model.upstreamId, model] as const));
  return { byName, byRepo, byUpstreamId };
}
