// Snapshot links and refs of the hub's cache layout: what makes verified blobs visible to the router and to other tools.
// Downloads nothing. A ref is written last and at once, as a reader takes it for "all of this is there".
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, link, open, readFile, readlink, realpath, rename, rm, stat, symlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { GatewayError, systemCode } from "../../core/errors.ts";
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
  temporaryPath,
} from "../layout/layout.ts";
import { blobName, type HubFile } from "../layout/select.ts";
import { digestsMatch, hashFile } from "./hash.ts";
import { holdPath } from "./in-use.ts";
import { fileAt } from "./partial-sidecar.ts";

/** How a snapshot's file may be made, the first that works: not every file system has links. */
export type LinkWay = "symlink" | "hardlink" | "copy";
const allWays: readonly LinkWay[] = ["symlink", "hardlink", "copy"];

export interface SnapshotLinks {
  readonly cacheDir: string;
  readonly repo: string;
  readonly commit: string;
  readonly files: readonly CachedFile[];
  readonly ways?: readonly LinkWay[];
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
    await putLink({ place, source, target: linkTarget(file.path, file.blob), cacheDir, repo, ways: ways ?? allWays });
  }
}

/** Whether the snapshot shows exactly that blob at the file's path. */
export async function isLinked(cacheDir: string, repo: string, commit: string, file: CachedFile): Promise<boolean> {
  return sameFile(snapshotPath(cacheDir, repo, commit, file.path), blobPath(cacheDir, repo, file.blob));
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
 * Links what an older snapshot holds into a newer one, where the newer commit has the same content.
 * Needed because the router lists only the snapshot that refs/main names: without it a second quant, pulled after the
 * repository moved on, makes the first one vanish. Answers with the old paths that the new commit has no more.
 */
export async function carryOver({
  cacheDir,
  repo,
  from,
  to,
  tree,
  signal,
}: CarryOver): Promise<{ readonly leftBehind: readonly string[] }> {
  const leftBehind: string[] = [];
  for (const old of await snapshotFiles(snapshotFolder(cacheDir, repo, from))) {
    const same = await sameContent(old, tree, signal);
    for (const file of same) {
      const digest = blobName(file);
      const place = snapshotPath(cacheDir, repo, to, file.path);
      if (await stat(place).catch(() => undefined)) continue;
      const source = blobPath(cacheDir, repo, digest);
      const inBlobs = await stat(source).then(
        (entry) => entry.size === file.size,
        () => false,
      );
      // Where there are no symlinks other tools keep the file itself in the snapshot, and no blob.
      const link = { place, cacheDir, repo, target: linkTarget(file.path, digest) };
      await putLink(
        inBlobs ? { ...link, source, ways: allWays } : { ...link, source: old.real, ways: ["hardlink", "copy"] },
      );
    }
    if (same.length === 0) leftBehind.push(old.path);
  }
  return { leftBehind };
}

/** The commit that a branch or tag of the cache points to; undefined where it points to none. */
export async function readRef(cacheDir: string, repo: string, revision: string): Promise<string | undefined> {
  try {
    const commit = (await readFile(refPath(cacheDir, repo, revision), "utf8")).trim();
    return isCommit(commit) ? commit : undefined;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw cacheError(error, `refs/${revision}`);
  }
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
  return alike.filter((file) => digestsMatch(file, digests));
}

interface Link {
  readonly place: string;
  readonly source: string;
  /** What a symlink at `place` says. */
  readonly target: string;
  readonly cacheDir: string;
  readonly repo: string;
  readonly ways: readonly LinkWay[];
}

async function putLink({ place, source, target, cacheDir, repo, ways }: Link): Promise<void> {
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
  const release = holdPath(temporary);
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
