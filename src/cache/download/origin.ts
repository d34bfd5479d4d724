// Whether a blob that is there is what its name says, and who stored it. Writes nothing.

import { blobPath } from "../layout/layout.ts";
import { blobName, type HubFile } from "../layout/select.ts";
import { digestsMatch, hashFile } from "./hash.ts";
import { hasStored } from "./partial-entries.ts";
import { fileAt } from "./partial-sidecar.ts";

/** Of a blob that has been checked: this gateway stored it, or found it there, stored by another program. */
export type Origin = "stored" | "found";

export interface OriginOptions {
  readonly cacheDir: string;
  /** Id of this gateway: by it unfinished files are known to be its own after a restart. */
  readonly gateway: string;
  /** What an earlier check of a blob of this name found, as far as it is remembered; others are hashed. */
  readonly vouched?: (blob: string) => Origin | undefined;
  /** Hash those too that somebody vouches for. */
  readonly verify?: boolean | undefined;
  readonly signal: AbortSignal;
}

/**
 * Undefined for a blob that is absent or wrong. One that nobody vouches for is hashed, after `onHash`: another tool may have
 * been cut off by the power, and its name is all that speaks for it. Throws `cache_unwritable`, `cancelled`.
 */
export async function originOf(
  options: OriginOptions,
  repo: string,
  file: HubFile,
  onHash: () => void,
): Promise<Origin | undefined> {
  const { cacheDir, signal, gateway } = options;
  const blob = blobName(file);
  const path = blobPath(cacheDir, repo, blob);
  if ((await fileAt(path))?.size !== file.size) return undefined;
  const known = options.vouched?.(blob) ?? ((await hasStored(cacheDir, repo, blob, gateway)) ? "stored" : undefined);
  if (known && options.verify !== true) return known;
  onHash();
  return digestsMatch(file, await hashFile(path, signal)) ? (known ?? "found") : undefined;
}
