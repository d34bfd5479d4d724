// Files of the cache that are no longer what was downloaded: found by their digests, which are their blobs' names, and thrown
// away, so that they are missing and are fetched again. Looks only when somebody has a reason to.
import { realpath, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { ignoreDangling } from "../../core/errors.ts";
import { cacheError } from "../../hub/errors.ts";
import { isDigest } from "../layout/layout.ts";
import { hashFile } from "./hash.ts";

/**
 * Of these links to blobs those whose blob is not what it is named for; they are deleted with it. What is no link to a blob
 * stays: nobody knows what it should be. Throws `cache_unwritable`, `cancelled`.
 */
export async function dropDamaged(links: readonly string[], signal?: AbortSignal): Promise<string[]> {
  const dropped: string[] = [];
  for (const link of links) {
    const blob = await realpath(link).catch(ignoreDangling);
    if (blob === null || basename(dirname(blob)) !== "blobs" || !isDigest(basename(blob))) continue;
    const { sha256, gitSha1 } = await hashFile(blob, signal);
    if ([sha256, gitSha1].includes(basename(blob))) continue;
    try {
      await rm(blob);
      await rm(link);
    } catch (error) {
      throw cacheError(error, basename(link));
    }
    dropped.push(link);
  }
  return dropped;
}
