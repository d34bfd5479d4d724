// Reads a repository's folder of the model cache: its refs, revisions and blobs, and what in it cannot be read. Writes nothing.
import { constants, type Dirent, type Stats } from "node:fs";
import { access, lstat, readlink } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { ignoreAbsent, ignoreDangling, isAbsent, systemCode } from "../../core/errors.ts";
import { readFile, stat } from "../../state/files.ts";
import { entriesBelow } from "../../state/folder.ts";
import { isDigest } from "../layout/layout.ts";
import type { RepoBlob, RepoFiles, RepoLink } from "../report/repo-files.ts";

export interface RepoFolder extends Pick<RepoFiles, "refs" | "snapshots" | "blobs" | "hasFolderLink"> {
  /** Paths of all entries that are no folders, relative to the repository's folder, with `/`. */
  readonly places: readonly string[];
  /**
   * Entries that cannot be read, as `PATH (CODE)`: a link that leads to itself, a folder of another user. llama-server exits at
   * the first one. It skips dangling links, and so does this.
   */
  readonly faults: readonly string[];
  /** Code of the system if a folder cannot be read, and so the files in it are not known; null: all are. */
  readonly failure: string | null;
  /** Changes with all of the above but the blobs. Null: not everything is told by listings and the status of files. */
  readonly stamp: string | null;
}

const nothing = { refs: [], snapshots: [], hasFolderLink: false, blobs: [], places: [], stamp: null };

interface Entry {
  readonly place: string;
  readonly isLink: boolean;
  /** Of the target of a link and of files in revisions; null if there is none. */
  readonly target: Stats | null;
}

/**
 * `known`: the folder as it was; answered itself if nothing has changed. Null if there is no such folder. Errors: the system's, of a
 * ref or blob.
 */
export async function readRepoFolder(
  root: string,
  { withBlobs = true, known }: { readonly withBlobs?: boolean; readonly known?: RepoFolder | undefined } = {},
): Promise<RepoFolder | null> {
  const faults: string[] = [];
  function note(error: unknown): string {
    const code = systemCode(error);
    if (code === undefined) throw error;
    faults.push(`${(error as NodeJS.ErrnoException).path ?? "?"} (${code})`);
    return code;
  }

  const list = withBlobs ? listFolder : listServed;
  const listed = await list(root).catch((error: unknown) => (isAbsent(error) ? null : note(error)));
  if (listed === null) return null;
  if (typeof listed === "string") return { ...nothing, faults, failure: listed };
  const files = listed.filter((entry) => !entry.isDirectory());
  const entries = await Promise.all(
    files.map(async (entry): Promise<Entry> => {
      const path = `${entry.parentPath}${sep}${entry.name}`;
      const place = path.slice(root.length + 1).replaceAll(sep, "/");
      const isLink = entry.isSymbolicLink();
      if (!isLink && !place.startsWith("snapshots/")) return { place, isLink, target: null };
      const target = await stat(path).catch((error: unknown) => {
        if (!isAbsent(error)) note(error);
        return null;
      });
      return { place, isLink, target };
    }),
  );
  if (entries.some(isDangling)) {
    // What lies in a folder of blobs that cannot be searched is not gone, and must not be pulled again.
    const failure = await access(join(root, "blobs"), constants.X_OK).catch((error: unknown) =>
      isAbsent(error) ? undefined : note(error),
    );
    if (failure !== undefined) return { ...nothing, faults: faults.slice(-1), failure };
  }
  const refs = await refsOf(root, entries);
  // Before the links are read: a stamp may be older than what it stands for, never newer.
  const stamp = withBlobs ? null : stampOf(entries, refs);
  if (known && stamp !== null && known.stamp === stamp) return known;
  const blobs = withBlobs ? await blobsOf(root, entries) : [];
  const shown = await snapshotsOf(root, entries, blobs);
  // A folder that was moved away meanwhile, and back, would go on without the links that could not be read.
  const isWhole = shown.snapshots.flatMap(({ files }) => files).length === entries.filter(isOfRevision).length;
  return {
    refs,
    ...shown,
    blobs,
    places: entries.map(({ place }) => place),
    faults: faults.sort(),
    failure: null,
    stamp: isWhole ? stamp : null,
  };
}

/**
 * Not by the times of folders, which would save the listings: some network file systems never change them, and a ref is rewritten in
 * its place. A link that leads to the same file by another way is the same; one that leads nowhere has no status.
 */
function stampOf(entries: readonly Entry[], refs: RepoFiles["refs"]): string | null {
  const lines = refs.map(({ name, commit }) => `${name} ${commit}`);
  for (const entry of entries) {
    if (isDangling(entry)) return null;
    const { place, target } = entry;
    lines.push(target ? `${place} ${inodeOf(target)} ${target.size} ${target.mtimeMs} ${target.ctimeMs}` : place);
  }
  return lines.join("\n");
}

function isDangling({ isLink, target }: Entry): boolean {
  return isLink && target === null;
}

function isOfRevision({ place }: Entry): boolean {
  return /^snapshots\/[^/]*\//.test(place);
}

/** All entries below. A person may have moved revisions or blobs to another disk; no other link is followed. */
async function listFolder(root: string): Promise<Dirent[]> {
  const entries = await entriesBelow(root);
  const moved = entries
    .filter((entry) => entry.parentPath === root && entry.isSymbolicLink())
    .map(({ name }) => name)
    .filter((name) => ["snapshots", "blobs", "refs"].includes(name));
  return [...entries, ...(await listBelow(root, moved))];
}

/** Of these, what llama-server lists: a pass needs no more, and blobs are half of all entries. */
async function listServed(root: string): Promise<Dirent[]> {
  return listBelow(root, ["refs", "snapshots"]).catch(async (error: unknown) => {
    // Where the repository itself is a link in a circle, that is what is to be repaired.
    await stat(root);
    throw error;
  });
}

async function listBelow(root: string, names: readonly string[]): Promise<Dirent[]> {
  const found = await Promise.all(names.map((name) => entriesBelow(join(root, name)).catch(ignoreAbsent)));
  return found.flatMap((entries) => entries ?? []);
}

async function blobsOf(root: string, entries: readonly Entry[]): Promise<RepoBlob[]> {
  const found = entries.map(async ({ place, isLink }): Promise<RepoBlob[]> => {
    const [folder, name = "", ...rest] = place.split("/");
    if (folder !== "blobs" || !isDigest(name) || rest.length > 0 || isLink) return [];
    const file = await lstat(join(root, place)).catch(ignoreDangling);
    return file?.isFile() ? [{ name, size: file.size, inode: inodeOf(file), names: file.nlink }] : [];
  });
  return (await Promise.all(found)).flat();
}

async function refsOf(root: string, entries: readonly Entry[]): Promise<RepoFiles["refs"]> {
  const refs: { name: string; commit: string }[] = [];
  for (const { place } of entries) {
    if (!place.startsWith("refs/")) continue;
    const text = await readFile(join(root, place), "utf8").catch(ignoreDangling);
    if (text !== null) refs.push({ name: place.slice("refs/".length), commit: text.trim() });
  }
  return refs;
}

async function snapshotsOf(
  root: string,
  entries: readonly Entry[],
  blobs: readonly RepoBlob[],
): Promise<Pick<RepoFiles, "snapshots" | "hasFolderLink">> {
  const byInode = new Map(blobs.map(({ inode, name }) => [inode, name]));
  const inside = entries.filter(({ place }) => /^snapshots(?:\/|$)/.test(place));
  const found = await Promise.all(
    inside.map(async (entry) => {
      const [, commit = "", ...path] = entry.place.split("/");
      // A file among the commits, as file browsers leave them.
      return { commit, link: path.length === 0 ? null : await linkOf(root, commit, path.join("/"), entry, byInode) };
    }),
  );
  const snapshots = new Map<string, RepoLink[]>();
  for (const { commit, link } of found) if (link) snapshots.set(commit, [...(snapshots.get(commit) ?? []), link]);
  return {
    snapshots: [...snapshots].map(([commit, files]) => ({ commit, files })),
    hasFolderLink: inside.some(({ isLink, target }) => isLink && target?.isDirectory() === true),
  };
}

/** A file of a revision; null if it went meanwhile. */
export async function readSnapshotFile(root: string, commit: string, path: string): Promise<RepoLink | null> {
  const place = join(root, "snapshots", commit, path);
  const found = await lstat(place).catch(ignoreDangling);
  if (!found) return null;
  const target = await stat(place).catch(ignoreDangling);
  return linkOf(root, commit, path, { isLink: found.isSymbolicLink(), target }, new Map());
}

async function linkOf(
  root: string,
  commit: string,
  path: string,
  { isLink, target }: Pick<Entry, "isLink" | "target">,
  byInode: ReadonlyMap<string, string>,
): Promise<RepoLink | null> {
  const place = join(root, "snapshots", commit, path);
  const modifiedAt = (target ?? (await lstat(place).catch(ignoreDangling)))?.mtimeMs;
  const to = isLink ? await readlink(place).catch(ignoreDangling) : null;
  if (modifiedAt === undefined || (isLink && to === null)) return null;
  const inode = target?.isFile() ? inodeOf(target) : null;
  const size = target?.isFile() ? target.size : null;
  const leadsTo = to === null ? "" : resolve(dirname(place), to);
  const named = dirname(leadsTo) === join(root, "blobs") && isDigest(basename(leadsTo)) ? basename(leadsTo) : null;
  return { path, isLink, blob: byInode.get(inode ?? "") ?? named, size, inode, modifiedAt };
}

function inodeOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}
