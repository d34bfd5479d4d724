// Brings a local .gguf file into the cache, as if it had been pulled. Reads the source, never changes or moves it.
import { createHash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { access, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { GatewayError, isAbsent, systemCode } from "../../core/errors.ts";
import { inferTag, type ModelId, repoOf, shardOf } from "../../core/ids.ts";
import { cancelled } from "../../hub/errors.ts";
import { isWholeGguf } from "../gguf/metadata.ts";
import { isSafePath } from "../layout/layout.ts";
import type { HubFile } from "../layout/select.ts";
import { gapsOf } from "./extents.ts";
import { bring, type FetchOptions, type PullResult, type Target } from "./fetch.ts";
import { hashFile } from "./hash.ts";
import { readRef } from "./link.ts";

export interface ImportOptions extends Omit<FetchOptions, "isStillWanted"> {
  readonly id: ModelId;
  /** Absolute. */
  readonly source: string;
}

/**
 * Throws `source_missing`, `not_a_model`, `disk_full`, `cache_unwritable`, `cancelled`. A sharded model is imported by any of
 * its shards.
 */
export async function importModel({ id, source, ...options }: ImportOptions): Promise<PullResult> {
  const { cacheDir, signal } = options;
  const repo = repoOf(id);
  const sources = shardPaths(source);
  for (const path of sources) await requireSource(path);
  /** With the path of each. */
  const files = new Map<HubFile, string>();
  for (const path of sources) {
    const { size } = await stat(path);
    files.set({ path: fileNameFor(id, path), size, oid: "", sha256: await hashFile(path, false, signal) }, path);
  }
  // One snapshot for all local models of a repository: the router lists only the one that refs/main names.
  const commit = (await readRef(cacheDir, repo, "main")) ?? createHash("sha1").update(repo).digest("hex");
  // Only a stop leaves a part: after any other end it would lie beside its source for nothing.
  return bring(options, {
    repo,
    tag: id.tag,
    commit,
    revision: "main",
    files: [...files.keys()],
    tree: [],
    fill: (file, target) => copy(files.get(file) ?? "", file.size, target, signal),
    cloneOf: (file) => files.get(file),
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

async function requireSource(source: string): Promise<void> {
  let isFile = false;
  try {
    isFile = (await stat(source)).isFile();
    await access(source, constants.R_OK);
  } catch (error) {
    if (!isAbsent(error)) throw sourceError(source, error);
  }
  if (!isFile) throw new GatewayError("source_missing", `${source} is not there`);
  if (!(await isWholeGguf(source))) throw new GatewayError("not_a_model", `${source} is not a whole GGUF file`);
}

/** An error of the cache has its code already. */
function sourceError(source: string, error: unknown): unknown {
  const code = error instanceof GatewayError ? undefined : systemCode(error);
  if (code === undefined) return error;
  return new GatewayError("source_missing", `${source} cannot be read (${code})`, { cause: error });
}

/** The source's own name if it has the tag; else one that does, or the model would never be found under its id. */
function fileNameFor(id: ModelId, source: string): string {
  const file = basename(source);
  // Without the ending, or with another spelling of it, nothing lists the file.
  if (file.endsWith(".gguf") && inferTag(file).toLowerCase() === id.tag.toLowerCase()) return file;
  const suffix = /-\d{5}-of-\d{5}(?=\.gguf$)/i.exec(file)?.[0] ?? "";
  const plain = `${id.name}-${id.tag}${suffix}.gguf`;
  return isSafePath(plain) && inferTag(plain).toLowerCase() === id.tag.toLowerCase()
    ? plain
    : `${id.tag}${suffix}.gguf`;
}

/** Relative to the folder of gateway.yaml. */
export function resolveSource(configPath: string, source: string): string {
  return resolve(dirname(configPath), source);
}

/** All shards of the model that the source is one of, in order. */
function shardPaths(source: string): string[] {
  const shard = shardOf(source);
  if (!shard) return [source];
  return Array.from({ length: shard.count }, (_, index) =>
    source.replace(/-\d{5}-of-/, `-${String(index + 1).padStart(5, "0")}-of-`),
  );
}

/** Sizes and times of all shards; null if one is not there. */
export async function sourceStamp(source: string): Promise<string | null> {
  const entries = await Promise.all(shardPaths(source).map((path) => stat(path).catch(() => null)));
  return entries.every((entry) => entry?.isFile())
    ? entries.map((entry) => `${entry?.size}:${entry?.mtimeMs}`).join(" ")
    : null;
}
