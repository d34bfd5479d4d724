// Brings a local .gguf file into the cache, as if it had been pulled. Reads the source, never changes or moves it.
import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, mkdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { GatewayError, systemCode } from "../core/errors.ts";
import { inferTag, type ModelId, repoOf, shardOf } from "../core/ids.ts";
import { cacheError } from "./errors.ts";
import { hasGgufMagic } from "./gguf-metadata.ts";
import { hashFile } from "./hash.ts";
import { holdPath } from "./in-use.ts";
import { blobPath, blobsFolder, type CachedFile, temporaryPath } from "./layout.ts";
import { linkSnapshot, readRef, writeRef } from "./link.ts";
import type { PulledModel } from "./pull.ts";

/** Throws `source_missing`, `disk_full`, `cache_unwritable`, `cancelled`. A sharded model is imported by its first shard. */
export async function importModel(options: {
  readonly cacheDir: string;
  readonly id: ModelId;
  /** Absolute. */
  readonly source: string;
  readonly signal: AbortSignal;
  onProgress(completed: number, total: number): void;
}): Promise<PulledModel> {
  const { cacheDir, id, signal } = options;
  const repo = repoOf(id);
  const sources = shardPaths(options.source);
  const sizes = await Promise.all(sources.map(sizeOf));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const files: CachedFile[] = [];
  for (const source of sources) {
    if (!(await hasGgufMagic(source))) throw new GatewayError("not_a_model", `${source} is no GGUF file`);
  }
  for (const [index, source] of sources.entries()) {
    options.onProgress(
      files.reduce((sum, file) => sum + file.size, 0),
      total,
    );
    const size = sizes[index] ?? 0;
    const before = await stampOf(source);
    const { sha256 } = await hashFile(source, signal);
    await placeBlob(cacheDir, repo, source, sha256, size, before);
    files.push({ path: fileNameFor(id, source), blob: sha256, size });
  }
  // One snapshot for all local models of a repository: the router lists only the one that refs/main names.
  const commit = (await readRef(cacheDir, repo, "main")) ?? createHash("sha1").update(repo).digest("hex");
  await linkSnapshot({ cacheDir, repo, commit, files });
  await writeRef(cacheDir, repo, "main", commit);
  options.onProgress(total, total);
  return { repo, tag: id.tag, commit, revision: "main", files };
}

function shardPaths(source: string): string[] {
  const shard = shardOf(source);
  if (!shard) return [source];
  return Array.from({ length: shard.count }, (_, index) =>
    source.replace(/-\d{5}-of-/, `-${String(index + 1).padStart(5, "0")}-of-`),
  );
}

async function sizeOf(source: string): Promise<number> {
  try {
    const entry = await stat(source);
    if (entry.isFile()) return entry.size;
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
  }
  throw new GatewayError("source_missing", `${source} is not there`);
}

/** The source's own name where it says the tag; else one that does, or the model would never be found under its id. */
function fileNameFor(id: ModelId, source: string): string {
  const file = basename(source);
  // Without the ending, or with another spelling of it, nobody lists the file.
  if (file.endsWith(".gguf") && inferTag(file).toLowerCase() === id.tag.toLowerCase()) return file;
  const suffix = /-\d{5}-of-\d{5}(?=\.gguf$)/i.exec(file)?.[0] ?? "";
  const plain = `${id.name}-${id.tag}${suffix}.gguf`;
  return inferTag(plain).toLowerCase() === id.tag.toLowerCase() ? plain : `${id.tag}${suffix}.gguf`;
}

/**
 * A copy (reflinked where the filesystem can), not a hard link: a source that its owner overwrites in place would change
 * the blob under its hash.
 */
async function placeBlob(
  cacheDir: string,
  repo: string,
  source: string,
  sha256: string,
  size: number,
  stamp: string,
): Promise<void> {
  const blob = blobPath(cacheDir, repo, sha256);
  if ((await stat(blob).catch(() => undefined))?.size === size) return;
  const partial = temporaryPath(cacheDir, repo, randomUUID());
  const release = holdPath(partial);
  try {
    await mkdir(blobsFolder(cacheDir, repo), { recursive: true });
    await copyFile(source, partial, constants.COPYFILE_FICLONE);
    // What was copied must be what was hashed: a source that is still being written is neither.
    if ((await stampOf(source)) !== stamp) throw new GatewayError("source_missing", `${source} is still being written`);
    await rename(partial, blob);
  } catch (error) {
    await rm(partial, { force: true });
    throw cacheError(error, basename(source));
  } finally {
    release();
  }
}

/** Changes whenever the file is written to. */
async function stampOf(source: string): Promise<string> {
  const { ino, size, mtimeMs } = await stat(source);
  return `${ino}:${size}:${mtimeMs}`;
}

/** Folder-relative sources belong to the folder of gateway.yaml. */
export function resolveSource(configPath: string, source: string): string {
  return resolve(dirname(configPath), source);
}
