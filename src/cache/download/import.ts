// Brings a local .gguf file into the cache, as if it had been pulled. Reads the source, never changes or moves it.
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { basename } from "node:path";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { inferTag, type ModelId, repoOf } from "../../core/ids.ts";
import { cacheError, cancelled } from "../../hub/errors.ts";
import { makeFolder } from "../../state/folder.ts";
import { isWholeGguf } from "../gguf/metadata.ts";
import { type CachedFile, isSafePath, partialPath, snapshotsFolder } from "../layout/layout.ts";
import type { HubFile } from "../layout/select.ts";
import { createRoom } from "./disk-space.ts";
import { coveredBytes, gapsOf } from "./extents.ts";
import { modelName } from "./fetch.ts";
import { hashFile } from "./hash.ts";
import { holdPath } from "./in-use.ts";
import { linkSnapshot, readRef, writeRef } from "./link.ts";
import { readPieces } from "./local-pieces.ts";
import { type OriginOptions, originOf } from "./origin.ts";
import { settleModel } from "./partials.ts";
import { bytesOf } from "./progress.ts";
import type { PulledModel } from "./pull.ts";
import { shardPaths } from "./source-file.ts";
import { type BlobOrder, keeps, storeBlob } from "./store-blob.ts";
import { discardBlobs, removeEmptyFolders } from "./tidy.ts";

export interface ImportOptions extends OriginOptions {
  readonly id: ModelId;
  /** Absolute. */
  readonly source: string;
  /** As a pull has it. */
  readonly beforeShown?: (model: PulledModel) => Promise<void>;
  freeBytes(folder: string): Promise<number | undefined>;
  /** Bytes of the whole model that are in the cache. */
  onProgress(completed: number, total: number): void;
}

/**
 * Throws `source_missing`, `not_a_model`, `disk_full`, `cache_unwritable`, `cancelled`. A sharded model is imported by any of
 * its shards.
 */
export async function importModel(options: ImportOptions): Promise<PulledModel> {
  const { cacheDir, gateway, id, signal } = options;
  const repo = repoOf(id);
  const sources = shardPaths(options.source);
  const sizes = await Promise.all(sources.map(sizeOf));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  for (const source of sources) {
    if (!(await isWholeGguf(source))) throw new GatewayError("not_a_model", `${source} is not a whole GGUF file`);
  }
  const releases: (() => void)[] = [];
  const files: CachedFile[] = [];
  const fresh: string[] = [];
  try {
    for (const [index, source] of sources.entries()) {
      const done = bytesOf(files);
      options.onProgress(done, total);
      const size = sizes[index] ?? 0;
      const before = await stampOf(source);
      const { sha256 } = await hashFile(source, signal);
      // Nothing links it yet: a cleaning must see that it is wanted.
      if (files.every(({ blob }) => blob !== sha256)) releases.push(holdPath(partialPath(cacheDir, repo, sha256)));
      const file = { path: fileNameFor(id, source), blob: sha256, size };
      const origin = await originOf(options, repo, hubFile(file), () => undefined);
      if (origin === undefined) {
        await storeCopy(options, file, { source, before, done, total });
        fresh.push(sha256);
      }
      files.push(origin === "found" ? { ...file, found: true } : file);
    }
    // Nobody wants it any more: it is not shown then.
    if (signal.aborted) throw cancelled(basename(options.source));
    const model = await show(options, files);
    await settleModel({ cacheDir, repo, model: modelName(options), blobs: files.map(({ blob }) => blob), gateway });
    options.onProgress(total, total);
    return model;
  } catch (error) {
    if (!keeps({ keepPartial: true }, signal)) await discardBlobs(cacheDir, repo, fresh, gateway);
    await removeEmptyFolders(cacheDir, repo);
    throw error;
  } finally {
    for (const release of releases) release();
  }
}

async function show({ cacheDir, id, beforeShown }: ImportOptions, files: readonly CachedFile[]): Promise<PulledModel> {
  const repo = repoOf(id);
  // One snapshot for all local models of a repository: the router lists only the one that refs/main names.
  const commit = (await readRef(cacheDir, repo, "main")) ?? createHash("sha1").update(repo).digest("hex");
  const model: PulledModel = { repo, tag: id.tag, commit, revision: "main", files };
  await beforeShown?.(model);
  await linkSnapshot({ cacheDir, repo, commit, files });
  await writeRef(cacheDir, repo, "main", commit);
  return model;
}

interface Copy {
  readonly source: string;
  /** The source's stamp before it was hashed. */
  readonly before: string;
  /** Bytes of the model that were there before this file. */
  readonly done: number;
  readonly total: number;
}

/**
 * A copy (a clone where the file system has them), not a hard link: a source that its owner overwrites in place would change
 * the blob under its hash. The copy is hashed too, as it is written: what it was read from may have changed since.
 */
async function storeCopy(
  options: ImportOptions,
  file: CachedFile,
  { source, before, done, total }: Copy,
): Promise<void> {
  const { cacheDir, id, signal } = options;
  const { size } = file;
  const repo = repoOf(id);
  const room = createRoom(() => options.freeBytes(cacheDir));
  // Other tools that read the cache warn of a repository without this folder.
  await makeFolder(snapshotsFolder(cacheDir, repo)).catch((error: unknown) => {
    throw cacheError(error, "its own folder");
  });
  const order: BlobOrder = {
    cacheDir,
    repo,
    file: hubFile(file),
    model: modelName(options),
    gateway: options.gateway,
    signal,
    room,
    // The gateway's stop is no reason to begin anew; after any other end it lies beside its source for nothing.
    keepPartial: true,
    isStillWanted: () => false,
    cloneOf: source,
    async fill({ partial, write }) {
      const there = () => coveredBytes(partial.extents());
      if (there() < size) await room.check(total - done - there());
      try {
        for await (const { position, bytes } of readPieces(source, gapsOf(partial.extents(), size), signal)) {
          await write(position, [bytes]);
          options.onProgress(done + there(), total);
        }
      } catch (error) {
        // What the cache refuses has its code already.
        const code = error instanceof GatewayError ? undefined : systemCode(error);
        if (code === undefined) throw error;
        throw new GatewayError("source_missing", `${source} cannot be read (${code})`, { cause: error });
      }
      // What was copied must be what was hashed: a source that is still being written is neither.
      if (there() < size || (await stampOf(source)) !== before)
        throw new GatewayError("source_missing", `${source} is still being written`);
    },
    onVerify: () => undefined,
  };
  await storeBlob(order);
}

async function sizeOf(source: string): Promise<number> {
  try {
    const entry = await stat(source);
    await access(source, constants.R_OK);
    if (entry.isFile()) return entry.size;
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    if (code !== "ENOENT" && code !== "ENOTDIR")
      throw new GatewayError("source_missing", `${source} cannot be read (${code})`, { cause: error });
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
  return isSafePath(plain) && inferTag(plain).toLowerCase() === id.tag.toLowerCase()
    ? plain
    : `${id.tag}${suffix}.gguf`;
}

function hubFile({ path, size, blob }: CachedFile): HubFile {
  return { path, size, oid: "", sha256: blob };
}

/** Changes whenever the file is written to. */
async function stampOf(source: string): Promise<string> {
  const { ino, size, mtimeMs } = await stat(source);
  return `${ino}:${size}:${mtimeMs}`;
}
