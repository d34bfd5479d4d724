// Deletes models from the cache: a requested removal with every trace, a prune only what was stored here according to the inventory.

import type { Inventory } from "../cache/inventory/inventory.ts";
import { type RemovedFiles, removeFiles } from "../cache/removal/remove.ts";
import { entryAfterRemoval, type LinkedFiles, linkedFiles, storedLinks } from "../cache/report/stored.ts";
import { surveyRepo } from "../cache/scan/survey.ts";
import { GatewayError } from "../core/errors.ts";
import type { Removal } from "../desired/document/document.ts";
import type { Router } from "../engines/llama/router.ts";
import type { CachedModel, InventoryEntry } from "../plan/observed.ts";
import { isMarked } from "../plan/removals.ts";
import { ownModel, prunedFiles, requestedFiles, storedCommits, storedFiles } from "../plan/removed-files.ts";
import type { Handlers } from "./executor.ts";
import type { Drainer } from "./router-actions.ts";

/** The requested removals, as the desired state keeps them. */
export interface Removals {
  get(id: string): Removal | undefined;
  note(id: string, found: Omit<LinkedFiles, "links">): Promise<void>;
  end(id: string): Promise<void>;
}

export function removalHandler(options: {
  readonly cacheDir: string;
  readonly inventory: Inventory;
  readonly router: Pick<Router, "instances" | "client">;
  readonly drainer: Drainer;
  readonly removals: Removals;
  /** The current cache. */
  readonly cachedModels: () => Promise<readonly CachedModel[]>;
}): Handlers["model.remove"] {
  const { cacheDir, inventory, removals } = options;

  /** Drains and unloads the model, and holds new requests while `task` runs. */
  async function apart(
    cached: CachedModel | undefined,
    signal: AbortSignal,
    task: () => Promise<RemovedFiles>,
  ): Promise<RemovedFiles> {
    const readmit = await options.drainer.drain(cached ? [cached.upstreamId] : [], signal);
    try {
      if (signal.aborted) throw signal.reason;
      await unload(cached);
      return await task();
    } finally {
      readmit();
    }
  }

  /** Best effort: files that a silent router has open are deleted too, and its reload ends the model. */
  async function unload(cached: CachedModel | undefined): Promise<void> {
    if (!cached || !options.router.instances.get(cached.upstreamId)) return;
    await options.router
      .client()
      .unload(cached.upstreamId)
      .catch(() => undefined);
  }

  async function forget(repo: string, removed: readonly InventoryEntry[]): Promise<void> {
    const files = await surveyRepo(cacheDir, repo);
    await inventory.review(repo, (entry) => entryAfterRemoval(entry, removed, files));
  }

  async function removeRequested(id: string, signal: AbortSignal): Promise<RemovedFiles> {
    const models = await options.cachedModels();
    const first = removals.get(id);
    const cached = first && models.find((model) => isMarked(first, model));
    return apart(cached, signal, async () => {
      const removal = removals.get(id);
      // Not a removal that found nothing: its caller would get the response that the files are gone.
      if (!removal) throw new GatewayError("cancelled", `${id} is not deleted: the document names it again`);
      const { repo, commit } = removal;
      const { entries, isTaken, paths } = requestedFiles(removal, inventory.entries(), models);
      const stored = entries.flatMap(storedFiles).filter(isTaken);
      const linked = linkedFiles(await surveyRepo(cacheDir, repo), paths);
      const found = {
        blobs: [...new Set([...removal.blobs, ...stored.map(({ blob }) => blob), ...linked.blobs])],
        commits: [...new Set([...(removal.commits ?? []), ...storedCommits(entries), ...linked.commits])],
      };
      await removals.note(id, found);
      const commits = [commit, ...found.commits];
      const removed = await removeFiles({ cacheDir, repo, links: linked.links, blobs: found.blobs, commits });
      await forget(repo, entries);
      await removals.end(id);
      return removed;
    });
  }

  async function prune(id: string, signal: AbortSignal): Promise<RemovedFiles> {
    const entry = inventory.get(id);
    if (!entry) throw new GatewayError("model_not_found", `${id} is not in the inventory`);
    const models = await options.cachedModels();
    return apart(ownModel(entry, models), signal, async () => {
      const { files, commits } = prunedFiles(entry, inventory.entries(), models);
      const stored = storedLinks(await surveyRepo(cacheDir, entry.repo), files, commits);
      const removed = await removeFiles({ cacheDir, repo: entry.repo, ...stored });
      await forget(entry.repo, [entry]);
      return removed;
    });
  }

  return async ({ model, requested }, { signal }) => ({
    removed: await (requested ? removeRequested(model, signal) : prune(model, signal)),
  });
}
