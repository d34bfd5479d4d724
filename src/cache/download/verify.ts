// Whether a blob is what its name promises, and which program stored it.
import { realpath, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { ignoreDangling } from "../../core/errors.ts";
import { orCacheError } from "../../hub/errors.ts";
import { blobPath, isDigest } from "../layout/layout.ts";
import { blobName, type HubFile } from "../layout/select.ts";
import { fileAt } from "./beside-partial.ts";
import { hashFile, isOneOf } from "./hash.ts";
import { hasStored } from "./partials.ts";

/** Of a blob that has been checked: this gateway stored it, or found it there, stored by another program. */
export type Origin = "stored" | "found";

export interface OriginOptions {
  readonly cacheDir: string;
  /** Id of this gateway: by it unfinished files are known to be its own after a restart. */
  readonly gateway: string;
  /** What an earlier check of a blob of this name found, as far as it is remembered; others are hashed. */
  readonly vouched?: (blob: string) => Origin | undefined;
  /** Hash those too that are vouched for. */
  readonly verify?: boolean | undefined;
  readonly signal: AbortSignal;
}

/**
 * Undefined for a blob that is absent or wrong. One that nothing vouches for is hashed, after `onHash`: another tool may have
 * been cut off by a power failure, and the blob's name is the only evidence. Throws `cache_unwritable`, `cancelled`.
 */
export async function originOf(
  { cacheDir, gateway, vouched, verify, signal }: OriginOptions,
  repo: string,
  file: HubFile,
  onHash: () => void,
): Promise<Origin | undefined> {
  const blob = blobName(file);
  const path = blobPath(cacheDir, repo, blob);
  if ((await fileAt(path))?.size !== file.size) return undefined;
  const known = vouched?.(blob) ?? ((await hasStored(cacheDir, repo, blob, gateway)) ? "stored" : undefined);
  if (known && verify !== true) return known;
  onHash();
  return isOneOf(await hashFile(path, signal), blob) ? (known ?? "found") : undefined;
}

/**
 * Deletes those of these links whose blob is not what it is named for, with the blob, so that they are fetched again. A file that
 * is no link to a blob stays: its digest is not known. Throws `cache_unwritable`, `cancelled`.
 */
export async function dropDamaged(links: readonly string[], signal?: AbortSignal): Promise<string[]> {
  const dropped: string[] = [];
  for (const link of links) {
    const blob = await realpath(link).catch(ignoreDangling);
    if (blob === null || basename(dirname(blob)) !== "blobs" || !isDigest(basename(blob))) continue;
    if (isOneOf(await hashFile(blob, signal), basename(blob))) continue;
    await orCacheError(basename(link), async () => {
      await rm(blob);
      await rm(link);
    });
    dropped.push(link);
  }
  return dropped;
}
