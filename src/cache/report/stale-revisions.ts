// Which revisions of ours in a repository's folder were superseded. Pure.
import type { Desired } from "../../desired/document/document.ts";
import type { CachedModel, InventoryEntry } from "../../plan/observed.ts";
import { pathInRepo } from "../../plan/removals.ts";
import type { RepoFiles } from "./repo-files.ts";
import { isStored, storedCommits, storedFiles } from "./stored.ts";

export interface StaleLink {
  readonly commit: string;
  readonly path: string;
  readonly blob: string;
}

export interface StaleRevision {
  readonly commit: string;
  readonly links: readonly StaleLink[];
  /** Links, and blobs that nothing links without them. */
  readonly files: number;
  /** Of those blobs. */
  readonly bytes: number;
}

/**
 * Revisions that we linked and that no ref names now, nor an entry of the inventory whose model is wanted. What is listed as a
 * model from one of them stays: `rm` and `prune` are for that. A revision that another program put a file into may be its
 * own by now, down to the last file.
 */
export function staleRevisions(
  { repo, refs, snapshots, blobs }: RepoFiles,
  entries: readonly InventoryEntry[],
  input: { readonly models: readonly CachedModel[]; readonly desired: Pick<Desired, "models"> },
): readonly StaleRevision[] {
  const wanted = new Set(input.desired.models.map(({ id }) => id.toLowerCase()));
  // Of the others what is listed stays. Where another program has moved the branch, nothing else takes what is ours.
  const kept = entries.filter(({ id, keep }) => keep || wanted.has(id.toLowerCase()));
  const named = new Set([...refs, ...kept].map(({ commit }) => commit));
  const linkedByUs = storedCommits(entries);
  const stored = entries.flatMap(storedFiles);
  const shown = shownAsModels(repo, input);
  const sizes = new Map(blobs.map(({ name, size }) => [name, size]));
  const left = new Map<string, number>();
  for (const { blob } of snapshots.flatMap(({ files }) => files))
    if (blob !== null) left.set(blob, (left.get(blob) ?? 0) + 1);
  const stale: StaleRevision[] = [];
  for (const { commit, files } of snapshots) {
    if (named.has(commit) || !linkedByUs.has(commit)) continue;
    const links = files.flatMap(({ path, blob }) =>
      blob !== null && isStored(stored, path, blob) && !shown.has(`${commit}/${path}`) ? [{ commit, path, blob }] : [],
    );
    if (links.length === 0 || !files.every(({ path, blob }) => isStored(stored, path, blob))) continue;
    const freed = links.flatMap(({ blob }) => {
      const rest = (left.get(blob) ?? 1) - 1;
      left.set(blob, rest);
      return rest > 0 ? [] : (sizes.get(blob) ?? 0);
    });
    stale.push({
      commit,
      links,
      files: links.length + freed.length,
      bytes: freed.reduce((sum, bytes) => sum + bytes, 0),
    });
  }
  return stale;
}

/** `commit/path` of the files of models that are whole, or wanted. */
function shownAsModels(
  repo: string,
  { models, desired }: { readonly models: readonly CachedModel[]; readonly desired: Pick<Desired, "models"> },
): ReadonlySet<string> {
  const wanted = new Set(desired.models.map(({ id }) => id.toLowerCase()));
  const listed = models.filter(
    (model) => model.repo === repo && (model.complete || wanted.has(model.id.toLowerCase())),
  );
  return new Set(
    listed.flatMap((model) =>
      [...model.files, ...(model.projector === null ? [] : [model.projector])].map(
        (file) => `${model.commit}/${pathInRepo(model, file)}`,
      ),
    ),
  );
}
