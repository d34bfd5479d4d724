// Which files of the model cache other machines may fetch: those whose checksum this gateway has verified itself. Pure.
import { commitOf } from "../../cache/layout/cached-repo.ts";
import { isCommit } from "../../core/ids.ts";
import type { CacheSnapshot, InventoryEntry } from "../../plan/observed.ts";
import { storedFile } from "../../plan/removals.ts";

export interface ServedFile {
  /** In the repository. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Lower-case sha256, or git's sha1 of a file outside LFS. */
  readonly digest: string;
  /** Absolute. */
  readonly place: string;
}

export interface ServedRevision {
  readonly repo: string;
  readonly commit: string;
  readonly files: readonly ServedFile[];
}

/** The verified files of a branch, tag or commit; null if there are none. */
export function servedAt(
  { repos }: Pick<CacheSnapshot, "repos">,
  inventory: readonly InventoryEntry[],
  repo: string,
  revision: string,
): ServedRevision | null {
  const cached = repos.find((each) => each.repo === repo);
  const commit = isCommit(revision) ? revision : cached && commitOf(cached, revision);
  const snapshot = cached?.snapshots.find((each) => each.commit === commit);
  if (!cached || !snapshot || commit === undefined) return null;
  const files = snapshot.files.flatMap((file): ServedFile[] => {
    const { path, size, damage } = file;
    const stored = storedFile(inventory, { repo, commit, ...file });
    if (!stored || size !== stored.size || damage !== null) return [];
    return [{ path, size, digest: stored.blob, place: `${cached.root}/snapshots/${commit}/${path}` }];
  });
  return files.length === 0 ? null : { repo, commit, files };
}
