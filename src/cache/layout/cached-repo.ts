// A repository's folder of the cache as data, and what becomes of it when files come and go: the plan shows the models that there
// will be. Pure.

import { groupModels, type ModelGroup, type Snapshot, type SnapshotFile } from "./models.ts";
import { blobName, type HubFile } from "./select.ts";

export interface CachedRepo {
  /** `owner/name` */
  readonly repo: string;
  /** Absolute. */
  readonly root: string;
  readonly refs: readonly { readonly name: string; readonly commit: string }[];
  /** That of refs/main first, then the newest. */
  readonly snapshots: readonly Snapshot[];
  /** An entry cannot be read: the router does not see the repository. */
  readonly isFaulty: boolean;
}

export function emptyRepo(repo: string, root: string): CachedRepo {
  return { repo, root, refs: [], snapshots: [], isFaulty: false };
}

/** `pinned`: as {@link groupModels} takes it. */
export function groupsOf(repo: CachedRepo, pinned: ReadonlyMap<string, string>): ModelGroup[] {
  // The router does not see a repository with faults, so it lists none of its models by itself.
  return groupModels(repo.snapshots, repo.isFaulty ? null : (commitOf(repo, "main") ?? null), pinned);
}

export function commitOf({ refs }: CachedRepo, revision: string): string | undefined {
  return refs.find(({ name }) => name === revision)?.commit;
}

export interface Brought {
  readonly commit: string;
  /** The ref that moves to the commit; null: none. */
  readonly ref: string | null;
  readonly files: readonly HubFile[];
  /** All files of the commit: what an older snapshot has of them is linked into this one, too. */
  readonly tree: readonly HubFile[];
  /** ms */
  readonly at: number;
}

/** After a pull or an import. */
export function withFiles(repo: CachedRepo, { commit, ref, files, tree, at }: Brought): CachedRepo {
  const whole = new Map(files.map((file) => [blobName(file), file]));
  // A blob is one file, whichever revisions link it.
  const mended = repo.snapshots.map((snapshot) => ({
    ...snapshot,
    files: snapshot.files.map((file) => mend(file, whole.get(file.blob ?? ""), at)),
  }));
  const before = ref === null ? undefined : commitOf(repo, ref);
  const shown = before === commit ? [] : (mended.find((each) => each.commit === before)?.files ?? []);
  const blobs = new Set(shown.flatMap(({ blob, size }) => (size === null ? [] : (blob ?? []))));
  const carried = tree.filter((file) => blobs.has(blobName(file)));
  const own = mended.find((each) => each.commit === commit)?.files ?? [];
  const linked = [...files, ...carried.filter(({ path }) => ![...own, ...files].some((file) => file.path === path))];
  const refs =
    ref === null || before === commit
      ? repo.refs
      : [...repo.refs.filter(({ name }) => name !== ref), { name: ref, commit }];
  const after = { commit, files: linkedInto(own, linked, mended, at) };
  return ordered({ ...repo, refs, snapshots: [after, ...mended.filter((each) => each.commit !== commit)] });
}

/** After a removal of the files that pass; revisions without a file go, and refs to them. */
export function withoutFiles(repo: CachedRepo, isGone: (file: SnapshotFile, commit: string) => boolean): CachedRepo {
  const snapshots = repo.snapshots
    .map(({ commit, files }) => ({ commit, files: files.filter((file) => !isGone(file, commit)) }))
    .filter(({ files }) => files.length > 0);
  const refs = repo.refs.filter((ref) => snapshots.some(({ commit }) => commit === ref.commit));
  return ordered({ ...repo, refs, snapshots });
}

/** Bytes of its blobs by name, and of files that are none by their place. */
export function storedBytes({ snapshots }: CachedRepo): ReadonlyMap<string, number> {
  return new Map(
    snapshots.flatMap(({ commit, files }) =>
      files.map(({ blob, path, size }) => [blob ?? `${commit}/${path}`, size ?? 0] as const),
    ),
  );
}

function mend(file: SnapshotFile, brought: HubFile | undefined, at: number): SnapshotFile {
  if (!brought || (file.size === brought.size && file.damage === null)) return file;
  return { ...file, size: brought.size, damage: null, modifiedAt: at };
}

function linkedInto(
  own: readonly SnapshotFile[],
  linked: readonly HubFile[],
  snapshots: readonly Snapshot[],
  at: number,
): readonly SnapshotFile[] {
  const known = new Map(snapshots.flatMap(({ files }) => files.map((file) => [file.blob, file] as const)));
  const files = linked
    .filter(({ path }) => path.endsWith(".gguf"))
    .map((file): SnapshotFile => {
      const { path, size } = file;
      const blob = blobName(file);
      const there = own.find((other) => other.path === path && other.blob === blob);
      return there ?? { path, size, blob, damage: null, modifiedAt: known.get(blob)?.modifiedAt ?? at };
    });
  const stay = own.filter(({ path }) => !files.some((file) => file.path === path));
  return [...stay, ...files].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

function ordered(repo: CachedRepo): CachedRepo {
  const main = commitOf(repo, "main");
  return {
    ...repo,
    snapshots: repo.snapshots.toSorted((a, b) => Number(b.commit === main) - Number(a.commit === main)),
  };
}
