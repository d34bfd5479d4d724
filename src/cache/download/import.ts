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
import { type FetchOptions, fetchFiles, type SourceTarget } from "./fetch.ts";
import { hashFile } from "./hash.ts";
import { readRef } from "./link.ts";
import { holding, type PulledModel, show } from "./pull.ts";
import { coveredBytes, gapsOf } from "./ranges.ts";

export interface ImportOptions extends Omit<FetchOptions, "model" | "keepPartial" | "isStillWanted"> {
  readonly id: ModelId;
  /** Absolute. */
  readonly source: string;
  /** As a pull has it. */
  readonly beforeShown?: (model: PulledModel) => Promise<void>;
}

interface LocalFile extends HubFile {
  readonly source: string;
  /** The source's stamp before it was hashed. */
  readonly stamp: string;
}

/**
 * Throws `source_missing`, `not_a_model`, `disk_full`, `cache_unwritable`, `cancelled`. A sharded model is imported by any of
 * its shards.
 */
export async function importModel(options: ImportOptions): Promise<PulledModel> {
  const { cacheDir, id, signal } = options;
  const repo = repoOf(id);
  const sources = shardPaths(options.source);
  for (const source of sources) await requireSource(source);
  const files: LocalFile[] = [];
  for (const source of sources) {
    const { size } = await stat(source);
    const stamp = await stampOf(source);
    const { sha256 } = await hashFile(source, signal);
    files.push({ path: fileNameFor(id, source), size, oid: "", sha256, source, stamp });
  }
  const localOf = (file: HubFile): LocalFile => files.find(({ path }) => path === file.path) as LocalFile;
  // A later start resumes it; after any other end it would lie beside its source for nothing.
  const wanted = { ...options, model: `${repo}:${id.tag}`, keepPartial: true, isStillWanted: () => false };
  return holding(cacheDir, repo, files, async () => {
    const fetched = await fetchFiles(wanted, repo, files, {
      fill: (file, target) => copy(localOf(file), target, signal),
      cloneOf: (file) => localOf(file).source,
    });
    // One snapshot for all local models of a repository: the router lists only the one that refs/main names.
    const commit = (await readRef(cacheDir, repo, "main")) ?? createHash("sha1").update(repo).digest("hex");
    const model: PulledModel = { repo, tag: id.tag, commit, revision: "main", files: fetched.files };
    await show(wanted, model, []);
    return model;
  });
}

/**
 * A copy (a clone if the file system has them), not a hard link: a source that its owner overwrites in place would change the
 * blob under its hash. The copy is hashed too, as it is written: its source may have changed since.
 */
async function copy(
  { source, size, stamp }: LocalFile,
  { partial, write, onBytes }: SourceTarget,
  signal: AbortSignal,
): Promise<void> {
  let completed = coveredBytes(partial.extents());
  try {
    for (const [from, to] of gapsOf(partial.extents(), size)) {
      const bytes = createReadStream(source, { start: from, end: to - 1, highWaterMark: 1024 * 1024, signal });
      let position = from;
      for await (const chunk of bytes as AsyncIterable<Buffer>) {
        await write(position, [chunk]);
        position += chunk.length;
        completed += chunk.length;
        onBytes(chunk.length, completed);
      }
    }
  } catch (error) {
    if (signal.aborted) throw cancelled(basename(source));
    // An error of the cache has its code already.
    const code = error instanceof GatewayError ? undefined : systemCode(error);
    if (code === undefined) throw error;
    throw new GatewayError("source_missing", `${source} cannot be read (${code})`, { cause: error });
  }
  // The copy must be what was hashed: a source that is still being written is not.
  if (completed < size || (await stampOf(source)) !== stamp)
    throw new GatewayError("source_missing", `${source} is still being written`);
}

async function requireSource(source: string): Promise<void> {
  let isFile = false;
  try {
    isFile = (await stat(source)).isFile();
    await access(source, constants.R_OK);
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    if (!isAbsent(error))
      throw new GatewayError("source_missing", `${source} cannot be read (${code})`, { cause: error });
  }
  if (!isFile) throw new GatewayError("source_missing", `${source} is not there`);
  if (!(await isWholeGguf(source))) throw new GatewayError("not_a_model", `${source} is not a whole GGUF file`);
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

/** Changes whenever the file is written to. */
async function stampOf(source: string): Promise<string> {
  const { ino, size, mtimeMs } = await stat(source);
  return `${ino}:${size}:${mtimeMs}`;
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
