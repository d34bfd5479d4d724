// What a hub cache folder's file lists mean: models, their ids, and which the router lists. Pure.
import { fileStem, inferTag, isAuxiliary, isProjector, routerTag, shardOf } from "../core/ids.ts";

/** A `.gguf` file of a snapshot. */
export interface SnapshotFile {
  /** Relative to the snapshot, with `/`. */
  readonly path: string;
  /** Bytes; null for a link whose target is gone. */
  readonly size: number | null;
  readonly modifiedAt: number;
  /** Name of the blob that it links to; null for a plain file. */
  readonly blob: string | null;
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

/** `ambiguousTag`: one under which the router lists this file or another of the same tag, it does not say which. */
type UntaggedGroup = Omit<ModelGroup, "tag" | "upstreamTag"> & { readonly ambiguousTag: string | null };

/**
 * The models of one repository. Snapshots come in order of precedence: a file that several revisions have counts in the
 * first of them. `mainCommit` is what refs/main names: the router looks nowhere else.
 */
export function groupModels(snapshots: readonly Snapshot[], mainCommit: string | null): ModelGroup[] {
  const groups = new Map<string, UntaggedGroup>();
  for (const snapshot of snapshots) {
    const isMain = snapshot.commit === mainCommit && /^[0-9a-f]{40}$/.test(snapshot.commit);
    for (const [key, group] of groupSnapshot(snapshot, isMain)) {
      const earlier = groups.get(key);
      if (!earlier || (group.complete && !earlier.complete)) groups.set(key, group);
    }
  }
  return assignTags([...groups.values()]);
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
      ambiguousTag: isMain && !listed ? tag : null,
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
  return files.length === count && inOrder && files.every((file) => file.size !== null);
}

function chooseProjector(files: readonly SnapshotFile[]): SnapshotFile | null {
  const rank = (file: SnapshotFile): number => (/[-.]f16/i.test(file.path) ? 0 : /bf16/i.test(file.path) ? 1 : 2);
  return files.toSorted((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1))[0] ?? null;
}

/**
 * An id means one model. Where several files of a repository have the same short quant tag, the plainest name (shortest,
 * then first) keeps it and the others are tagged by their file names; equal names in two folders get the folder in front.
 */
function assignTags(groups: readonly UntaggedGroup[]): ModelGroup[] {
  const taken = new Set<string>();
  const upstream = new Set(groups.flatMap((group) => group.routerTag ?? group.ambiguousTag ?? []));
  const ordered = groups.toSorted((a, b) => a.stem.length - b.stem.length || (firstPath(a) < firstPath(b) ? -1 : 1));
  return ordered.map((group) => {
    const path = firstPath(group);
    const candidates = [inferTag(path), fileStem(path), path.replace(/\.gguf$/i, "").replaceAll("/", "-")];
    const tag = candidates.find((candidate) => !taken.has(candidate.toLowerCase())) ?? path.replaceAll("/", "-");
    taken.add(tag.toLowerCase());
    const upstreamTag = group.routerTag ?? freeUpstreamTag(tag, upstream);
    upstream.add(upstreamTag);
    const { ambiguousTag: _, ...rest } = group;
    return { ...rest, tag, upstreamTag };
  });
}

/**
 * The router puts a section's tag through its own rule (`foo.Bar-1` becomes `1`), so that two files could end up as one:
 * a tag of capitals, digits and underscores passes unchanged.
 */
function freeUpstreamTag(tag: string, taken: ReadonlySet<string>): string {
  const plain = tag.replace(/[^A-Za-z0-9]/g, "_").toUpperCase();
  let candidate = plain;
  for (let count = 2; taken.has(candidate); count++) candidate = `${plain}_${count}`;
  return candidate;
}

function firstPath(group: Pick<ModelGroup, "files">): string {
  return group.files[0]?.path ?? "";
}

/** Other names of a model in its repository: its file's name, and the router's tag. */
export function aliasTags(group: ModelGroup): string[] {
  return [group.stem, group.routerTag].filter((name) => name !== null && name !== group.tag) as string[];
}
