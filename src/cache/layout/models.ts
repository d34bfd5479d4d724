// The models of a repository's folder of the cache, their ids, and which the router lists. Pure.
import { fileStem, inferTag, routerTag } from "../../core/ids.ts";
import { chooseProjector, groupFiles, missingShards } from "./model-files.ts";

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

function groupSnapshot({ commit, files: all }: Snapshot, isMain: boolean): Map<string, UntaggedGroup> {
  const found = groupFiles(all);
  const present = all.filter((file) => file.size !== null);
  const routerTags = found.map(({ files }) => tagOfFirst(files));
  return new Map(
    found.map((group, index) => {
      const { folder, stem, files, shards } = group;
      const tag = routerTags[index] ?? null;
      // Of two files with one tag the router serves one of its own choice: then neither counts as listed.
      const isListed = isMain && routerTags.filter((other) => other === tag).length === 1;
      const isWhole = missingShards(group).length === 0 && files.length === Math.max(1, shards);
      return [
        `${folder}/${stem}/${shards}`,
        {
          stem,
          commit,
          files,
          complete: isWhole && files.every((file) => file.size !== null && file.damage === null),
          routerTag: isListed ? tag : null,
          projector: chooseProjector(present, folder),
        },
      ];
    }),
  );
}

function tagOfFirst(files: readonly SnapshotFile[]): string | null {
  return files.map((file) => routerTag(file.path)).find((tag) => tag !== null) ?? null;
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
    // An id is shown on terminals: other programs store files of any name.
    const path = firstPath(group).replaceAll(/\p{Cc}/gu, "_");
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
export function contentKey(
  repo: string,
  commit: string,
  { path, blob, size, modifiedAt }: Omit<SnapshotFile, "damage">,
): string {
  return `${repo} ${blob ?? `${commit}/${path}`} ${size} ${modifiedAt}`;
}

/** Other names of a model in its repository: its file's name, and the router's tag. */
export function aliasTags(group: ModelGroup): string[] {
  return [group.stem, group.routerTag].filter((name) => name !== null && name !== group.tag) as string[];
}

/** A model of the cache, without what its metadata has; `folder`: of its snapshot. */
export function modelOf(repo: string, folder: string, group: ModelGroup) {
  const { tag, commit, files, complete, projector } = group;
  return {
    id: `${repo}:${tag}`,
    repo,
    tag,
    aliases: aliasTags(group).map((other) => `${repo}:${other}`),
    routerId: group.routerTag === null ? null : `${repo}:${group.routerTag}`,
    upstreamId: `${repo}:${group.upstreamTag}`,
    commit,
    files: files.map(({ path }) => `${folder}/${path}`),
    blobs: files.map(({ blob }) => blob),
    bytes: files.reduce((sum, { size }) => sum + (size ?? 0), 0),
    complete,
    damage: [...files, ...(projector ? [projector] : [])].find(({ damage }) => damage !== null)?.damage ?? null,
    projector: projector && `${folder}/${projector.path}`,
    modifiedAt: Math.max(...files.map(({ modifiedAt }) => modifiedAt)),
    digest: files[0]?.blob ?? null,
  };
}
