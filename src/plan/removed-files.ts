// Which files a removal takes: one rule for the handler that deletes them and for the plan that shows it. Pure.
import type { CachedFile } from "../cache/layout/layout.ts";
import { isProjector } from "../core/ids.ts";
import type { Removal } from "../desired/document/document.ts";
import { findCached } from "./find-model.ts";
import type { CachedModel, InventoryEntry } from "./observed.ts";
import { coversEntry, holdsFilesOf, isMarked } from "./removals.ts";

/** Of the entry, and of what it was before. */
export function storedFiles({ files, former = [] }: InventoryEntry): readonly CachedFile[] {
  return [...files, ...former.flatMap((revision) => revision.files)];
}

/**
 * Revisions that a pull of this gateway linked files into. A pull that moves a branch links what was there before into the new
 * revision too, so that these count for every model of the repository.
 */
export function storedCommits(entries: readonly InventoryEntry[]): ReadonlySet<string> {
  return new Set(entries.flatMap(({ commit, former = [] }) => [commit, ...former.map((revision) => revision.commit)]));
}

/** What a requested removal takes: entries of the inventory, and files in every revision by their paths. */
export function requestedFiles(removal: Removal, inventory: readonly InventoryEntry[], models: readonly CachedModel[]) {
  const { files, projector } = removal;
  const cached = models.find((model) => isMarked(removal, model));
  const { isLast, isTaken } = takenWith(cached, removal.repo, models);
  const entries = inventory.filter((entry) => coversEntry(removal, entry));
  const noted = entries.flatMap((entry) => entry.files).filter(isTaken);
  const paths = [...files, ...noted.map(({ path }) => path), ...(isLast && projector !== null ? [projector] : [])];
  return { entries, isTaken, paths: [...new Set(paths)] };
}

/** What prune takes, by the inventory alone: another program may show the same file, or another one by its name, in revisions of its own. */
export function prunedFiles(
  entry: InventoryEntry,
  inventory: readonly InventoryEntry[],
  models: readonly CachedModel[],
) {
  const { isTaken } = takenWith(ownModel(entry, models), entry.repo, models);
  const files = storedFiles(entry).filter(isTaken);
  return { files, commits: storedCommits(inventory.filter(({ repo }) => repo === entry.repo)) };
}

/** Another program's file may have taken the name since the plan was made: it is not ours to delete. */
export function ownModel(entry: InventoryEntry, models: readonly CachedModel[]): CachedModel | undefined {
  const found = findCached(models, entry.id);
  return found && holdsFilesOf(entry, found) ? found : undefined;
}

/** A projector serves every quant of its repository: it goes with the last of them. */
function takenWith(cached: CachedModel | undefined, repo: string, models: readonly CachedModel[]) {
  const isLast = !models.some((other) => other.repo === repo && other !== cached);
  return { isLast, isTaken: ({ path }: CachedFile): boolean => isLast || !isProjector(path) };
}
