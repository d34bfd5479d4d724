// Takes models out of the cache: one that somebody asked to remove with every trace, and one that is pruned as far as the
// inventory says that we put it there.
import { GatewayError } from "../core/errors.ts";
import { isProjector } from "../core/ids.ts";
import type { Removal } from "../desired/document.ts";
import type { Router } from "../engines/router.ts";
import { snapshotPath } from "../hub/layout.ts";
import { removeModel } from "../hub/remove.ts";
import { type CachedModel, findCached, holdsFilesOf } from "../plan/observed.ts";
import { coversEntry, isMarked } from "../plan/removals.ts";
import type { Handlers, RemovedFiles } from "./executor.ts";
import type { Inventory } from "./inventory.ts";
import { linkedBlobs } from "./linked-blobs.ts";
import type { Drainer } from "./router-actions.ts";

/** The removals that were asked for, as the desired state keeps them. */
export interface Removals {
  get(id: string): Removal | undefined;
  note(id: string, blobs: readonly string[]): Promise<void>;
  end(id: string): Promise<void>;
}

export function removalHandler(options: {
  readonly cacheDir: string;
  readonly inventory: Inventory;
  readonly router: Pick<Router, "instances" | "client">;
  readonly drainer: Drainer;
  readonly removals: Removals;
  /** The cache as it is now. */
  readonly cachedModels: () => Promise<readonly CachedModel[]>;
}): Handlers["model.remove"] {
  const { cacheDir, inventory, removals } = options;

  /** Unloads the model once its answers are through, and lets nobody in while `task` runs. */
  async function apart(
    cached: CachedModel | undefined,
    signal: AbortSignal,
    task: () => Promise<RemovedFiles>,
  ): Promise<RemovedFiles> {
    const letIn = await options.drainer.drain(cached ? [cached.upstreamId] : [], signal);
    try {
      if (signal.aborted) throw signal.reason;
      await unload(cached);
      return await task();
    } finally {
      letIn();
    }
  }

  /** As far as it goes: what a router that does not answer has open is deleted all the same, and its reload ends the model. */
  async function unload(cached: CachedModel | undefined): Promise<void> {
    if (!cached || !options.router.instances.get(cached.upstreamId)) return;
    await options.router
      .client()
      .unload(cached.upstreamId)
      .catch(() => undefined);
  }

  async function removeRequested(id: string, signal: AbortSignal): Promise<RemovedFiles> {
    const models = await options.cachedModels();
    const first = removals.get(id);
    const cached = first && models.find((model) => isMarked(first, model));
    return apart(cached, signal, async () => {
      const removal = removals.get(id);
      // No removal that found nothing: whoever asked for it would be told that the files are gone.
      if (!removal) throw new GatewayError("cancelled", `${id} is not deleted: the document names it again`);
      const { repo, commit, files, projector } = removal;
      const entries = inventory.entries().filter((entry) => coversEntry(removal, entry));
      // A projector serves every quant of its repository: it goes with the last of them.
      const alone = !models.some((other) => other.repo === repo && other !== cached);
      const noted = entries.flatMap((entry) => entry.files).filter((file) => alone || !isProjector(file.path));
      const paths = [
        ...new Set([...files, ...noted.map((file) => file.path), ...(alone && projector !== null ? [projector] : [])]),
      ];
      const blobs = new Set([
        ...removal.blobs,
        ...noted.map((file) => file.blob),
        ...(await linkedBlobs(cacheDir, repo, paths)),
      ]);
      await removals.note(id, [...blobs]);
      const links = paths.map((path) => snapshotPath(cacheDir, repo, commit, path));
      const removed = await removeModel({ cacheDir, repo, links, blobs: [...blobs] });
      for (const entry of entries) await inventory.remove(entry.id);
      await removals.end(id);
      return removed;
    });
  }

  async function prune(id: string, signal: AbortSignal): Promise<RemovedFiles> {
    const entry = inventory.get(id);
    if (!entry) throw new GatewayError("model_not_found", `${id} is not in the inventory`);
    const models = await options.cachedModels();
    const found = findCached(models, id);
    // Another program's file may have taken the name since the plan was made: it is not ours to delete.
    const cached = found && holdsFilesOf(entry, found) ? found : undefined;
    return apart(cached, signal, async () => {
      const alone = !models.some((other) => other.repo === entry.repo && other.id !== cached?.id);
      const files = entry.files.filter((file) => alone || !isProjector(file.path));
      // By the inventory too: after a removal that was cut short the cache shows no model any more.
      const noted = files.map((file) => snapshotPath(cacheDir, entry.repo, entry.commit, file.path));
      const links = [
        ...new Set([...noted, ...(cached?.files ?? []), ...(alone && cached?.projector ? [cached.projector] : [])]),
      ];
      const blobs = files.map((file) => file.blob);
      // Another program stored those: only the links to them are ours.
      const spared = files.flatMap((file) => (file.found ? [file.blob] : []));
      const removed = await removeModel({ cacheDir, repo: entry.repo, links, blobs, spared });
      await inventory.remove(id);
      return removed;
    });
  }

  return ({ model, requested }, { signal }) => (requested ? removeRequested(model, signal) : prune(model, signal));
}
