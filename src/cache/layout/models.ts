// What a hub cache folder's file lists mean: models, their ids, and which the router lists. Pure.
import { fileStem, inferTag, isAuxiliary, isProjector, routerTag, shardOf } from "../../core/ids.ts";

/** A `.gguf` file of a snapshot. */
export interface SnapshotFile {
  /** Relative to the snapshot, with `/`. */
  readonly path: string;
  /** Bytes; null for a link whose target is gone. */
  readonly size: number | null;
  readonly modifiedAt: number;
  /** Name of the blob that it links to; null for a plain file. */
  readonly blob: string | null;
  /** Why its content is known to be wrong; null: it is not. */
  readonly damage: string | null;
}

export interface Snapshot {
  readonly commit: string;
  readonly files: readonly SnapshotFile[];
}

export interface ModelGroup {
  readonly tag: string;
  readonly stem: string;
  readonly commit: string;
  readonly files: readonly SnapshotFile[];
  readonly complete: boolean;
  /** The tag under which the router lists it by itself. */
  readonly routerTag: string | null;
  /** The tag by which the router is asked for it: its own, or one that it would register as it stands. */
  readonly upstreamTag: string;
  readonly projector: SnapshotFile | null;
}

type UntaggedGroup = Omit<ModelGroup, "tag" | "upstreamTag">;

/**
 * The models of one repository. Snapshots come in order of precedence: a file that several revisions have counts in the
 * first of them. `mainCommit` is what refs/main names: the router looks nowhere else. `pinned`: of these files, by path, the
 * commit's are wanted, whatever else there is.
 */
export function groupModels(
  snapshots: readonly Snapshot[],
  mainCommit: string | null,
  pinned: ReadonlyMap<string, string> = new Map(),
): ModelGroup[] {
  const groups = new Map<string, UntaggedGroup>();
  // Also of files that are broken, or one of several with one tag: the router lists them all the same.
  const listed = new Set<string>();
  for (const snapshot of snapshots) {
    const isMain = snapshot.commit === mainCommit && /^[0-9a-f]{40}$/.test(snapshot.commit);
    for (const [key, group] of groupSnapshot(snapshot, isMain)) {
      const tag = isMain ? tagOfFirst(group.files) : null;
      if (tag !== null) listed.add(tag);
      const earlier = groups.get(key);
      const isPinned = pinned.get(firstPath(group)) === snapshot.commit;
      if (!earlier || (group.complete && (isPinned || !earlier.complete))) groups.set(key, group);
    }
  }
  return assignTags([...groups.values()], listed);
}

function groupSnapshot(snapshot: Snapshot, isMain: boolean): Map<string, UntaggedGroup> {
  const models = snapshot.files.filter((file) => !isAuxiliary(file.path) && !isProjector(file.path));
  const projector = chooseProjector(snapshot.files.filter((file) => isProjector(file.path) && file.size !== null));
  const byKey = new Map<string, SnapshotFile[]>();
  for (const file of models) {
    const key = groupKey(file.path);
    byKey.set(key, [...(byKey.get(key) ?? []), file]);
  }
  const routerTags = [...byKey.values()].map((files) => tagOfFirst(files));
  const groups = new Map<string, UntaggedGroup>();
  for (const [key, unsorted] of byKey) {
    const files = unsorted.toSorted((a, b) => (a.path < b.path ? -1 : 1));
    const tag = tagOfFirst(files);
    // Of two files with one tag the router serves one of its own choice: then neither counts as listed.
    const listed = isMain && tag !== null && routerTags.filter((other) => other === tag).length === 1;
    groups.set(key, {
      stem: fileStem(files[0]?.path ?? ""),
      commit: snapshot.commit,
      files,
      complete: isComplete(files),
      routerTag: listed ? tag : null,
      projector,
    });
  }
  return groups;
}

function tagOfFirst(files: readonly SnapshotFile[]): string | null {
  return files.map((file) => routerTag(file.path)).find((tag) => tag !== null) ?? null;
}

/** Shards of one model share folder, stem and count. */
function groupKey(path: string): string {
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  return `${folder}${fileStem(path)}/${shardOf(path)?.count ?? 0}`;
}

function isComplete(files: readonly SnapshotFile[]): boolean {
  const count = shardOf(files[0]?.path ?? "")?.count ?? 1;
  const inOrder = files.every((file, index) => (shardOf(file.path)?.index ?? 1) === index + 1);
  return files.length === count && inOrder && files.every((file) => file.size !== null && file.damage === null);
}

function chooseProjector(files: readonly SnapshotFile[]): SnapshotFile | null {
  const rank = (file: SnapshotFile): number => (/[-.]f16/i.test(file.path) ? 0 : /bf16/i.test(file.path) ? 1 : 2);
  return files.toSorted((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1))[0] ?? null;
}

/**
 * An id means one model. Where several files of a repository have the same short quant tag, the plainest name (shortest,
 * then first) keeps it and the others are tagged by their file names; equal names in two folders get the folder in front.
 */
function assignTags(groups: readonly UntaggedGroup[], listed: ReadonlySet<string>): ModelGroup[] {
  const taken = new Set<string>();
  const upstream = new Set(listed);
  const ordered = groups.toSorted((a, b) => a.stem.length - b.stem.length || (firstPath(a) < firstPath(b) ? -1 : 1));
  return ordered.map((group) => {
    const path = firstPath(group);
    const whole = path.replace(/\.gguf$/i, "").replaceAll("/", "-");
    const isFree = (candidate: string): boolean => !taken.has(candidate.toLowerCase());
    const tag = [inferTag(path), fileStem(path)].find(isFree) ?? numbered(whole, "-", isFree);
    taken.add(tag.toLowerCase());
    // The router puts a section's tag through its own rule (`foo.Bar-1` becomes `1`), so that two files could end up as
    // one: a tag of capitals, digits and underscores passes unchanged.
    const plain = tag.replace(/[^A-Za-z0-9]/g, "_").toUpperCase();
    const upstreamTag = group.routerTag ?? numbered(plain, "_", (candidate) => !upstream.has(candidate));
    upstream.add(upstreamTag);
    return { ...group, tag, upstreamTag };
  });
}

/** The name, or with the first number behind it that makes it free. */
function numbered(name: string, joint: string, isFree: (candidate: string) => boolean): string {
  let candidate = name;
  for (let count = 2; !isFree(candidate); count++) candidate = `${name}${joint}${count}`;
  return candidate;
}

function firstPath(group: Pick<ModelGroup, "files">): string {
  return group.files[0]?.path ?? "";
}

/** Identifies a file's content: changes when the file is written. */
export function contentKey(repo: string, commit: string, { path, blob, size, modifiedAt }: SnapshotFile): string {
  return `${repo} ${blob ?? `${commit}/${path}`} ${size} ${modifiedAt}`;
}

/** Other names of a model in its repository: its file's name, and the router's tag. */
export function aliasTags(group: ModelGroup): string[] {
  return [group.stem, group.routerTag].filter((name) => name !== null && name !== group.tag) as string[];
}
