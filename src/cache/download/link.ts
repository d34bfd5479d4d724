// Snapshot links and refs of the hub's cache layout: they make verified blobs visible to the router and to other tools.
// A ref is written last and in one step, as a reader takes it for "all of this is there".
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, link, open, readFile, readlink, realpath, rename, rm, stat, symlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { GatewayError, ignoreDangling, isAbsent } from "../../core/errors.ts";
import { isCommit } from "../../core/ids.ts";
import { cacheError } from "../../hub/errors.ts";
import { syncFolder } from "../../state/atomic-file.ts";
import { entriesBelow, makeFolder } from "../../state/folder.ts";
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
import { fileAt } from "./beside-partial.ts";
import { hashFile, isOneOf } from "./hash.ts";
import { holdPaths } from "./in-use.ts";

/** Ways to make a snapshot's file; the first that works counts, as not every file system has links. */
export type LinkWay = "symlink" | "hardlink" | "copy";
const allWays: readonly LinkWay[] = ["symlink", "hardlink", "copy"];

export interface SnapshotLinks {
  readonly cacheDir: string;
  readonly repo: string;
  readonly commit: string;
  readonly files: readonly CachedFile[];
  readonly ways?: readonly LinkWay[] | undefined;
}

/** Links verified blobs into a commit's snapshot. A blob that is not there, whole, is refused before anything is linked. */
export async function linkSnapshot({ cacheDir, repo, commit, files, ways }: SnapshotLinks): Promise<void> {
  for (const file of files) {
    if ((await fileAt(blobPath(cacheDir, repo, file.blob)))?.size !== file.size)
      throw new GatewayError("checksum_mismatch", `The blob of ${file.path} is not there, or not whole.`);
  }
  for (const file of files) {
    const place = snapshotPath(cacheDir, repo, commit, file.path);
    const source = blobPath(cacheDir, repo, file.blob);
    await putLink({ place, source, target: linkTarget(file.path, file.blob), cacheDir, repo, ways });
  }
}

export interface CarryOver {
  readonly cacheDir: string;
  readonly repo: string;
  readonly from: string;
  readonly to: string;
  /** All files of the commit `to`. */
  readonly tree: readonly HubFile[];
  readonly signal?: AbortSignal;
}

/**
 * Links the files of an older snapshot into a newer one, if the newer commit has the same content: the router lists only the
 * snapshot of refs/main, and without it a second quant, pulled after the repository moved on, makes the first one vanish.
 */
export async function carryOver({ cacheDir, repo, from, to, tree, signal }: CarryOver): Promise<void> {
  for (const old of await snapshotFiles(snapshotFolder(cacheDir, repo, from))) {
    for (const file of await sameContent(old, tree, signal)) {
      const digest = blobName(file);
      const place = snapshotPath(cacheDir, repo, to, file.path);
      if (await stat(place).catch(() => undefined)) continue;
      const source = blobPath(cacheDir, repo, digest);
      const link = { place, cacheDir, repo, target: linkTarget(file.path, digest) };
      // Without symlinks other tools keep the file itself in the snapshot, and no blob.
      const isBlob = (await stat(source).catch(() => undefined))?.size === file.size;
      await putLink(isBlob ? { ...link, source } : { ...link, source: old.real, ways: ["hardlink", "copy"] });
    }
  }
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

/** Points a branch or tag to a commit, in one step. */
export async function writeRef(cacheDir: string, repo: string, revision: string, commit: string): Promise<void> {
  const place = refPath(cacheDir, repo, revision);
  await replace(place, cacheDir, repo, async (temporary) => {
    const handle = await open(temporary, "w");
    try {
      await handle.writeFile(commit);
      await handle.sync();
    } finally {
      await handle.close();
    }
  });
  await syncFolder(dirname(place));
}

interface OldFile {
  /** Inside the snapshot, with `/`. */
  readonly path: string;
  /** The file behind it. */
  readonly real: string;
  readonly size: number;
  /** Name of the blob, where the entry is a link to one. */
  readonly blob: string | undefined;
}

async function snapshotFiles(folder: string): Promise<OldFile[]> {
  const entries = await entriesBelow(folder).catch(() => []);
  const files: OldFile[] = [];
  for (const entry of entries) {
    if (entry.isDirectory()) continue;
    const full = `${entry.parentPath}/${entry.name}`;
    const path = full.slice(folder.length + 1).replaceAll("\\", "/");
    const found = await stat(full).catch(() => undefined);
    if (!found?.isFile()) continue;
    const blob = entry.isSymbolicLink() ? basename(await readlink(full)) : undefined;
    files.push({ path, real: await realpath(full), size: found.size, blob });
  }
  return files;
}

/** The files of the tree whose content the old file has; a real file's is known only by hashing it. */
async function sameContent(
  old: OldFile,
  tree: readonly HubFile[],
  signal: AbortSignal | undefined,
): Promise<HubFile[]> {
  const alike = tree.filter((file) => file.size === old.size && isSafePath(file.path));
  if (alike.length === 0 || old.blob !== undefined) return alike.filter((file) => blobName(file) === old.blob);
  const digests = await hashFile(old.real, signal);
  return alike.filter((file) => isOneOf(digests, blobName(file)));
}

interface Link {
  readonly place: string;
  readonly source: string;
  /** The target of a symlink at `place`. */
  readonly target: string;
  readonly cacheDir: string;
  readonly repo: string;
  readonly ways?: readonly LinkWay[] | undefined;
}

async function putLink({ place, source, target, cacheDir, repo, ways = allWays }: Link): Promise<void> {
  if (await sameFile(place, source)) return;
  await replace(place, cacheDir, repo, async (temporary) => {
    let refusal: unknown;
    for (const way of ways) {
      try {
        if (way === "symlink") await symlink(target, temporary, "file");
        else if (way === "hardlink") await link(source, temporary);
        else await copyFile(source, temporary, constants.COPYFILE_FICLONE);
        return;
      } catch (error) {
        refusal = error;
      }
    }
    throw refusal;
  });
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

/** Names of the blobs that links in the snapshots lead to; null if a link to a folder may show any of them. */
export async function shownBlobs(cacheDir: string, repo: string): Promise<ReadonlySet<string> | null> {
  const shown = new Set<string>();
  for (const entry of (await entriesBelow(snapshotsFolder(cacheDir, repo)).catch(ignoreDangling)) ?? []) {
    if (!entry.isSymbolicLink()) continue;
    const place = `${entry.parentPath}/${entry.name}`;
    if ((await stat(place).catch(ignoreDangling))?.isDirectory()) return null;
    shown.add(basename((await readlink(place).catch(ignoreDangling)) ?? ""));
  }
  return shown;
}
