// Whether complete files have the digests that they are named for.
import { realpath, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { ignoreDangling } from "../../core/errors.ts";
import { orCacheError } from "../../hub/errors.ts";
import { isDigest } from "../layout/layout.ts";
import { following } from "./hash-follower.ts";

/** A blob is named by its sha256, or by git's sha1 outside LFS. */
export function isGitDigest(digest: string): boolean {
  return digest.length === 40;
}

/** Whether a complete file has the digest that its name promises. Throws `cache_unwritable` if it cannot be read, `cancelled`. */
export async function hasDigest(path: string, digest: string, signal: AbortSignal): Promise<boolean> {
  return (await hashFile(path, isGitDigest(digest), signal)) === digest;
}

/** Hashes a complete file. Throws as {@link hasDigest}. */
export async function hashFile(path: string, isGit: boolean, signal: AbortSignal): Promise<string> {
  const { size } = await orCacheError(basename(path), () => stat(path));
  return following({ path, size, isGit }, signal, (follower) => {
    follower.advance(size);
    return follower.digest();
  });
}

/**
 * Deletes those of these links whose blob is not what it is named for, with the blob, so that they are fetched again. A file that
 * is no link to a blob stays: its digest is not known. Throws `cache_unwritable`, `cancelled`.
 */
export async function dropDamaged(links: readonly string[], signal: AbortSignal): Promise<string[]> {
  const dropped: string[] = [];
  for (const link of links) {
    const blob = await realpath(link).catch(ignoreDangling);
    if (blob === null || basename(dirname(blob)) !== "blobs" || !isDigest(basename(blob))) continue;
    if (await hasDigest(blob, basename(blob), signal)) continue;
    await orCacheError(basename(link), async () => {
      await rm(blob);
      await rm(link);
    });
    dropped.push(link);
  }
  return dropped;
}
