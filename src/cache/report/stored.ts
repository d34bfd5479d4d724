// The files of a repository that this gateway stored, by its inventory, and what it remembers once some of them are gone. Pure.
import { isCommit } from "../../core/ids.ts";
import type { InventoryEntry } from "../../plan/observed.ts";
import { storedCommits, storedFiles } from "../../plan/removed-files.ts";
import type { CachedFile } from "../layout/layout.ts";
import { linkedBlobs, type RepoFiles, type RepoLink, type RepoPlace } from "./repo-files.ts";

/** Without those that were here when they were pulled: the link to such a one is ours, and the blob is not. */
export function storedBlobs(files: readonly CachedFile[]): string[] {
  return files.flatMap(({ blob, found }) => (found ? [] : blob));
}

/** Whether a file of a snapshot is one of these by name and content; its revision is another matter. */
export function isStored(files: readonly CachedFile[], path: string, blob: string | null): boolean {
  return blob !== null && files.some((file) => file.path === path && file.blob === blob);
}

/** The entry after these blobs were collected, by what is there now; null if nothing of it is left. */
export function rememberedEntry(
  entry: InventoryEntry,
  files: RepoFiles | null,
  collected: readonly string[],
): InventoryEntry | null {
  const isThere = (revision: Pick<InventoryEntry, "files">): boolean =>
    revision.files.some(({ blob }) => hasBlob(files, blob));
  const { former: before = [], ...rest } = entry;
  const former = before.filter(isThere);
  if (former.length > 0) return { ...rest, former };
  return !isThere(entry) && entry.files.some(({ blob }) => collected.includes(blob)) ? null : rest;
}

/**
 * The entry after models were removed. Of them it keeps blobs that stayed without a link: a pull under way counts on them, and
 * may fail. The others get the revisions of those removed, which their files were linked into too.
 */
export function entryAfterRemoval(
  entry: InventoryEntry,
  removed: readonly InventoryEntry[],
  files: RepoFiles | null,
): InventoryEntry | null {
  const { former = [], ...rest } = entry;
  if (removed.some(({ id }) => id === entry.id)) {
    const linked = files ? linkedBlobs(files) : new Set();
    const left = storedFiles(entry).filter(({ blob, found }) => !found && !linked.has(blob) && hasBlob(files, blob));
    return left.length === 0 ? null : { ...rest, files: left };
  }
  const known = storedCommits([entry]);
  const inherited = [...storedCommits(removed)].filter((commit) => {
    const snapshot = files?.snapshots.find((other) => other.commit === commit);
    return !known.has(commit) && snapshot?.files.some(({ path, blob }) => isStored(entry.files, path, blob));
  });
  if (inherited.length === 0) return entry;
  return { ...rest, former: [...former, ...inherited.map((commit) => ({ commit, files: entry.files }))] };
}

function hasBlob(files: RepoFiles | null, blob: string): boolean {
  return files?.blobs.some(({ name }) => name === blob) ?? false;
}

/** What a removal takes. */
export interface LinkedFiles {
  readonly links: readonly RepoPlace[];
  /** Names of blobs. */
  readonly blobs: readonly string[];
  /** Revisions that have any of the files. */
  readonly commits: readonly string[];
}

/** Files by their paths in the repository, in every revision: else an older one would come back. */
export function linkedFiles(files: RepoFiles | null, paths: readonly string[]): LinkedFiles {
  const found = (files?.snapshots ?? []).flatMap(({ commit, files: all }) =>
    all.filter(({ path }) => paths.includes(path)).map(({ path, blob }) => ({ commit, path, blob })),
  );
  return {
    links: found,
    blobs: [...new Set(found.flatMap(({ blob }) => blob ?? []))],
    commits: [...new Set(found.map(({ commit }) => commit))].filter(isCommit),
  };
}

/** What this gateway stored in these revisions and nothing else: another program may show other files by these names. */
export function storedLinks(
  files: RepoFiles | null,
  stored: readonly CachedFile[],
  commits: ReadonlySet<string>,
): LinkedFiles {
  const isOurs = ({ path, isLink, blob, size }: RepoLink): boolean =>
    stored.some((own) => own.path === path && (blob === null ? !isLink && size === own.size : blob === own.blob));
  const links = (files?.snapshots ?? [])
    .filter(({ commit }) => commits.has(commit))
    .flatMap(({ commit, files: all }) => all.filter(isOurs).map(({ path }) => ({ commit, path })));
  return { links, blobs: storedBlobs(stored), commits: [...commits] };
}
