// What of a repository's folder this gateway stored, by its inventory, and what it remembers once some of it is gone. Pure.
import type { InventoryEntry } from "../../plan/observed.ts";
import { linkedBlobs, type RepoFiles } from "./repo-files.ts";

type StoredFile = InventoryEntry["files"][number];

/** Of the entry, and of what it was before. */
export function storedFiles({ files, former = [] }: InventoryEntry): readonly StoredFile[] {
  return [...files, ...former.flatMap((revision) => revision.files)];
}

/**
 * Revisions that a pull of this gateway linked files into. A pull that moves a branch links what was there before into the new
 * revision too, so that these count for every model of the repository.
 */
export function storedCommits(entries: readonly InventoryEntry[]): ReadonlySet<string> {
  return new Set(entries.flatMap(({ commit, former = [] }) => [commit, ...former.map((revision) => revision.commit)]));
}

/** Whether a file of a snapshot is one of these by name and content; its revision is another matter. */
export function isStored(files: readonly StoredFile[], path: string, blob: string | null): boolean {
  return blob !== null && files.some((file) => file.path === path && file.blob === blob);
}

/**
 * What the inventory still has to remember of an entry after these blobs were collected, by what lies there now; null:
 * nothing of it is left.
 */
export function rememberedEntry(
  entry: InventoryEntry,
  files: RepoFiles | null,
  collected: readonly string[],
): InventoryEntry | null {
  const blobs = new Set(files?.blobs.map(({ name }) => name) ?? []);
  const isThere = (revision: Pick<InventoryEntry, "files">): boolean =>
    revision.files.some(({ blob }) => blobs.has(blob));
  const { former: before = [], ...rest } = entry;
  const former = before.filter(isThere);
  if (former.length > 0) return { ...rest, former };
  return !isThere(entry) && entry.files.some(({ blob }) => collected.includes(blob)) ? null : rest;
}

/**
 * The same after models were removed: of them, blobs that stayed without a link, as a pull under way counts on them and may
 * yet be given up; of the others, that their files lie in the revisions of those removed.
 */
export function entryAfterRemoval(
  entry: InventoryEntry,
  removed: readonly InventoryEntry[],
  files: RepoFiles | null,
): InventoryEntry | null {
  if (removed.some(({ id }) => id === entry.id)) {
    const linked = files ? linkedBlobs(files) : new Set();
    const left = storedFiles(entry).filter(
      // What another program stored is left to it.
      ({ blob, found }) => !found && !linked.has(blob) && (files?.blobs.some(({ name }) => name === blob) ?? false),
    );
    const { former: _, ...rest } = entry;
    return left.length === 0 ? null : { ...rest, files: left };
  }
  const known = storedCommits([entry]);
  const inherited = [...storedCommits(removed)].filter(
    (commit) =>
      !known.has(commit) &&
      files?.snapshots.some(
        (snapshot) =>
          snapshot.commit === commit && snapshot.files.some(({ path, blob }) => isStored(entry.files, path, blob)),
      ),
  );
  if (inherited.length === 0) return entry;
  return {
    ...entry,
    former: [...(entry.former ?? []), ...inherited.map((commit) => ({ commit, files: entry.files }))],
  };
}
