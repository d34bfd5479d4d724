// Snapshot links and refs of the hub's cache layout: they make verified blobs visible to the router and to other tools.
// A ref is written last and in one step, as a reader takes it for "all of this is there".
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, link, readFile, readlink, realpath, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { ignoreDangling, isAbsent } from "../../core/errors.ts";
import { isCommit } from "../../core/ids.ts";
import { cacheError } from "../../hub/errors.ts";
import { entriesBelow, makeFolder, syncFolder } from "../../state/folder.ts";
import {
  blobPath,
  type CachedFile,
  isSafePath,
  linkTarget,
  refPath,
  snapshotFolder,
  snapshotPath,
  snapshotsFolder,
  temporaryPath,
} from "../layout/layout.ts";
import { blobName, type HubFile } from "../layout/select.ts";
import { holdPaths } from "./in-use.ts";
import { fileAt } from "./partial-file.ts";

/** Ways to make a snapshot's file; the first that works counts, as not every file system has links. */
export type LinkWay = "symlink" | "hardlink" | "copy";
const allWays: readonly LinkWay[] = ["symlink", "hardlink", "copy"];

export interface SnapshotLinks {
  readonly cacheDir: string;
  readonly repo: string;
  readonly commit: string;
  readonly files: readonly CachedFile[];
  readonly ways?: readonly LinkWay[];
}

/** Links blobs into a commit's snapshot. */
export async function linkSnapshot({ files, ...into }: SnapshotLinks): Promise<void> {
  for (const { path, blob } of files) await putLink({ ...into, path, blob });
}

/**
 * Links the files of an older snapshot into a newer one, if the newer commit has the same content: the router lists only the
 * snapshot of refs/main, and without it a second quant, pulled after the repository moved on, makes the first one vanish.
 * `tree`: all files of the newer commit.
 */
export async function carryOver(options: {
  readonly cacheDir: string;
  readonly repo: string;
  readonly from: string;
  readonly to: string;
  readonly tree: readonly HubFile[];
}): Promise<void> {
  const { cacheDir, repo, from, to, tree } = options;
  const shown = await blobsLinkedBelow(snapshotFolder(cacheDir, repo, from)).catch(ignoreDangling);
  for (const file of tree) {
    const { path, size } = file;
    const blob = blobName(file);
    if (!shown?.blobs.has(blob) || !isSafePath(path)) continue;
    const isThere = (await stat(snapshotPath(cacheDir, repo, to, path)).catch(() => undefined)) !== undefined;
    if (isThere || (await fileAt(blobPath(cacheDir, repo, blob)))?.size !== size) continue;
    await putLink({ cacheDir, repo, commit: to, path, blob });
  }
}

/** Names of the blobs that links in the snapshots lead to; null if a link to a folder may show any of them. */
export async function shownBlobs(cacheDir: string, repo: string): Promise<ReadonlySet<string> | null> {
  const shown = await blobsLinkedBelow(snapshotsFolder(cacheDir, repo)).catch(ignoreDangling);
  if (shown?.hasFolderLink) return null;
  return shown?.blobs ?? new Set();
}

async function blobsLinkedBelow(
  folder: string,
): Promise<{ readonly blobs: ReadonlySet<string>; readonly hasFolderLink: boolean }> {
  const blobs = new Set<string>();
  let hasFolderLink = false;
  for (const entry of await entriesBelow(folder)) {
    if (!entry.isSymbolicLink()) continue;
    const place = `${entry.parentPath}/${entry.name}`;
    hasFolderLink ||= (await stat(place).catch(ignoreDangling))?.isDirectory() === true;
    blobs.add(basename((await readlink(place).catch(ignoreDangling)) ?? ""));
  }
  return { blobs, hasFolderLink };
}

/** The commit that a branch or tag of the cache points to; undefined where it points to none. */
export async function readRef(cacheDir: string, repo: string, revision: string): Promise<string | undefined> {
  const text = await readFile(refPath(cacheDir, repo, revision), "utf8").catch((error: unknown) => {
    if (isAbsent(error)) return "";
    throw cacheError(error, `refs/${revision}`);
  });
  const commit = text.trim();
  return isCommit(commit) ? commit : undefined;
}

/**
 * Points a branch or tag to a commit, in one step. `link` makes the commit's links, at the last moment before: a look at the cache
 * in between finds files that the router does not list, and on a slow disk the preset was written and read twice for one pull.
 */
export async function writeRef(
  cacheDir: string,
  repo: string,
  revision: string,
  commit: string,
  link = (): Promise<void> => Promise.resolve(),
): Promise<void> {
  const place = refPath(cacheDir, repo, revision);
  await replace(place, cacheDir, repo, async (temporary) => {
    await writeFile(temporary, commit, { flush: true });
    await link();
  });
  await syncFolder(dirname(place));
}

async function putLink({
  cacheDir,
  repo,
  commit,
  path,
  blob,
  ways = allWays,
}: Omit<SnapshotLinks, "files"> & Pick<CachedFile, "path" | "blob">): Promise<void> {
  const place = snapshotPath(cacheDir, repo, commit, path);
  const source = blobPath(cacheDir, repo, blob);
  if (await sameFile(place, source)) return;
  await replace(place, cacheDir, repo, (temporary) => linkFile(source, linkTarget(path, blob), temporary, ways));
}

/**
 * Makes a blob of a file elsewhere, by a hard link: then it stays when the original is deleted. On another file system, or where the
 * system allows no hard link to a file of another user, by a symlink.
 */
export async function linkBlob(cacheDir: string, repo: string, blob: string, original: string): Promise<void> {
  const place = blobPath(cacheDir, repo, blob);
  // Of a hard link to a symlink the target would be another one in another folder.
  const file = await realpath(original);
  await replace(place, cacheDir, repo, (temporary) => linkFile(file, file, temporary, ["hardlink", "symlink"]));
  await syncFolder(dirname(place));
}

/** Makes `place` lead to a file, the symlink by `target`; where there are no links it is a copy. */
export async function linkFile(source: string, target: string, place: string, ways = allWays): Promise<void> {
  let refusal: unknown;
  for (const way of ways) {
    try {
      if (way === "symlink") return await symlink(target, place, "file");
      if (way === "hardlink") return await link(source, place);
      return await copyFile(source, place, constants.COPYFILE_FICLONE);
    } catch (error) {
      refusal = error;
    }
  }
  throw refusal;
}

/** Makes something under a temporary name, then renames it to its place: a reader sees the old or the new, never a half. */
async function replace(
  place: string,
  cacheDir: string,
  repo: string,
  make: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = temporaryPath(cacheDir, repo, `${process.pid}-${randomBytes(4).toString("hex")}`);
  const release = holdPaths([temporary]);
  try {
    await makeFolder(dirname(place));
    await make(temporary);
    // A hard link renamed over another name of the same file does nothing and leaves the temporary name.
    await rename(temporary, place);
  } catch (error) {
    throw cacheError(error, basename(place));
  } finally {
    await rm(temporary, { force: true });
    release();
  }
}

/** Whether two paths are one file: by a link of either kind. */
async function sameFile(a: string, b: string): Promise<boolean> {
  const [left, right] = await Promise.all([a, b].map((path) => stat(path).catch(() => undefined)));
  return left !== undefined && right !== undefined && left.ino === right.ino && left.dev === right.dev;
}
