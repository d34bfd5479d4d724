// The model cache with another content of one repository. Pure.
import { type CachedRepo, storedBytes } from "../../cache/layout/cached-repo.ts";
import { compare } from "../../cache/layout/model-files.ts";
import { equalJson, type Json } from "../../core/json.ts";
import { modelsIn, noFacts } from "../cached-models.ts";
import type { CachedModel, CacheSnapshot, InventoryEntry, Observed } from "../observed.ts";

export interface Stored extends Pick<Observed, "cache" | "inventory" | "freeBytes"> {
  /** By which the cache grew; below 0: it shrank. */
  readonly addedBytes: number;
}

export function unchanged({ cache, inventory, freeBytes }: Observed): Stored {
  return { cache, inventory, freeBytes, addedBytes: 0 };
}

export function withRepo(before: Observed, after: CachedRepo, inventory: readonly InventoryEntry[]): Stored {
  const { cache, freeBytes } = before;
  if (cache.state === "unknown") return { ...unchanged(before), inventory };
  const was = cache.value.repos.find(({ repo }) => repo === after.repo);
  const addedBytes = bytesOf(after) - (was ? bytesOf(was) : 0);
  const isSame = equalJson(seenOf(was), seenOf(after));
  const others = cache.value.repos.filter((repo) => repo !== was);
  const repos = (after.snapshots.length === 0 ? others : [...others, after]).toSorted((a, b) =>
    compare(a.root, b.root),
  );
  return {
    cache: {
      ...cache,
      value: {
        ...cache.value,
        repos,
        models: modelsOf(repos, cache.value, after, inventory),
        // Another one than before: the real one is a hash.
        signature: isSame ? cache.value.signature : `${cache.value.signature}+`,
      },
    },
    inventory,
    freeBytes: freeBytes.state === "known" ? { ...freeBytes, value: freeBytes.value - addedBytes } : freeBytes,
    addedBytes,
  };
}

function modelsOf(
  repos: readonly CachedRepo[],
  before: CacheSnapshot,
  after: CachedRepo,
  inventory: readonly InventoryEntry[],
): readonly CachedModel[] {
  const byRepo = new Map<string, CachedModel[]>(repos.map(({ repo }) => [repo, []]));
  for (const model of before.models) if (model.repo !== after.repo) byRepo.get(model.repo)?.push(model);
  const known = new Map(before.models.map((model) => [model.files[0], model]));
  for (const { model } of modelsIn(after, inventory)) {
    const same = known.get(model.files[0] ?? "");
    byRepo.get(after.repo)?.push({ ...noFacts, ...(same?.digest === model.digest ? same : {}), ...model });
  }
  return [...byRepo.values()].flat();
}

function bytesOf(repo: CachedRepo): number {
  return [...storedBytes(repo).values()].reduce((total, size) => total + size, 0);
}

/** What the scanner's signature is made of. */
function seenOf(repo: CachedRepo | undefined): Json {
  const main = repo?.refs.find(({ name }) => name === "main")?.commit ?? null;
  const snapshots = (repo?.snapshots ?? []).map(({ commit, files }) => ({
    commit,
    files: files.map((file) => ({ ...file })),
  }));
  return { main, snapshots };
}
