// Which files of the model cache other machines may fetch: those whose checksum this gateway has verified itself; and for which they
// may wait. Pure.
import { commitOf } from "../../cache/layout/cached-repo.ts";
import { isCommit } from "../../core/ids.ts";
import type { RunningAction } from "../../plan/actions.ts";
import { type CacheSnapshot, type InventoryEntry, isOfRepo } from "../../plan/observed.ts";
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

interface SeenDocument {
  readonly generation: number;
}

type Running = readonly Pick<RunningAction, "action">[];

/** Not what is only named in the document: its pull may have failed, or be held. `last`: the newest pass. */
export function isComing(
  repo: string,
  running: Running,
  last: { readonly desired: SeenDocument; readonly running: Running } | null,
  current: SeenDocument & { readonly document: { readonly models: readonly { readonly id: string }[] } },
): boolean {
  // A pull that has ended may be in no pass yet, and neither may a document that has just changed.
  const pulls = [...running, ...(last?.running ?? [])].flatMap(({ action }) =>
    action.kind === "model.pull" ? action.model : [],
  );
  const named = current.generation === last?.desired.generation ? [] : current.document.models.map(({ id }) => id);
  return [...pulls, ...named].some((id) => isOfRepo(id, [repo]));
}
