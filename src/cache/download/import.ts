// Brings a local .gguf file into the cache, as if it had been pulled. Reads the source, never changes or moves it.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { type ModelId, repoOf } from "../../core/ids.ts";
import { cancelled } from "../../hub/errors.ts";
import { contentDigest, fileNameFor } from "../layout/import-name.ts";
import type { HubFile } from "../layout/select.ts";
import { gapsOf } from "./extents.ts";
import { bring, type FetchOptions, type PullResult, type Target } from "./fetch.ts";
import { hashFile } from "./hash.ts";
import { requireShards, sourceError } from "./import-source.ts";
import { readRef } from "./link.ts";

export interface ImportOptions extends Omit<FetchOptions, "isStillWanted"> {
  readonly id: ModelId;
  /** Absolute. */
  readonly source: string;
}

/**
 * Throws `source_missing`, `not_a_model`, `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`. A sharded model is
 * imported by any of its shards; a file that its store names by its content is linked.
 */
export async function importModel({ id, source, ...options }: ImportOptions): Promise<PullResult> {
  const { cacheDir, signal } = options;
  const repo = repoOf(id);
  const paths = new Map<HubFile, string>();
  for (const path of await requireShards(source)) {
    const { size } = await stat(path);
    const sha256 = await hashFile(path, false, signal);
    const named = contentDigest(path);
    if (named !== null && named !== sha256)
      throw new GatewayError("checksum_mismatch", `${path} has other bytes than its name promises`);
    paths.set({ path: fileNameFor(id, basename(path)), size, oid: "", sha256 }, path);
  }
  // One snapshot for all local models of a repository: the router lists only the one that refs/main names.
  const commit = (await readRef(cacheDir, repo, "main")) ?? createHash("sha1").update(repo).digest("hex");
  // Only a stop leaves a part: after any other end it would lie beside its source for nothing.
  return bring(options, {
    repo,
    tag: id.tag,
    commit,
    revision: "main",
    files: [...paths.keys()],
    tree: [],
    fill: (file, target) => copy(paths.get(file) ?? "", file.size, target, signal),
    cloneOf: (file) => paths.get(file),
    linkOf: (file) => (contentDigest(paths.get(file) ?? "") === null ? undefined : paths.get(file)),
  });
}

/**
 * A copy (a clone if the file system has them), not a hard link: a source that its owner overwrites in place would change the
 * blob under its hash. The copy is hashed too, as it is written: its source may have changed since.
 */
async function copy(source: string, size: number, { partial, write }: Target, signal: AbortSignal): Promise<void> {
  try {
    for (const [from, to] of gapsOf(partial.extents(), size)) {
      const bytes = createReadStream(source, { start: from, end: to - 1, highWaterMark: 1024 * 1024, signal });
      let position = from;
      for await (const chunk of bytes as AsyncIterable<Buffer>) {
        await write(position, [chunk]);
        position += chunk.length;
      }
      if (position < to) throw new GatewayError("source_missing", `${source} is still being written`);
    }
  } catch (error) {
    if (signal.aborted) throw cancelled(basename(source));
    throw sourceError(source, error);
  }
}
