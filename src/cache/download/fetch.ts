// The files of one model that the cache lacks: the disk space they need, one after the other, and the progress. Links nothing.
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import { cancelled, orCacheError } from "../../hub/errors.ts";
import { makeFolder } from "../../state/folder.ts";
import { isWholeGguf } from "../gguf/metadata.ts";
import { blobPath, type CachedFile, partialPath, snapshotsFolder } from "../layout/layout.ts";
import { blobName, type HubFile } from "../layout/select.ts";
import { createDiskRoom } from "./disk-space.ts";
import { resumableBytes } from "./partial-file.ts";
import { discardBlobs, removeEmptyFolders } from "./partials.ts";
import { bytesOf, createPace, type PullProgress, progressOf, secondsLeft } from "./progress.ts";
import { type BlobTarget, type KeepRules, keeps, storeBlob } from "./store-blob.ts";
import { type Origin, type OriginOptions, originOf } from "./verify.ts";

export interface FetchOptions extends KeepRules, OriginOptions {
  /** `owner/name:tag`: sidecars name the model of a partial by it. */
  readonly model: string;
  /** Free bytes of the disk of a folder; undefined if they are not known. */
  freeBytes(folder: string): Promise<number | undefined>;
  onProgress(progress: PullProgress): void;
  readonly tuning?: FetchTuning | undefined;
}

/** Set by tests and benchmarks. */
export interface FetchTuning {
  /** A record of what is on the disk after so many bytes. */
  readonly recordBytes?: number | undefined;
  /** Milliseconds between two samples of the rate. */
  readonly lookMs?: number | undefined;
}

/** Brings the bytes of a file that are not there: from the hub, or from the disk. */
export interface Source {
  fill(file: HubFile, target: SourceTarget): Promise<void>;
  /** A local file with the same bytes. */
  cloneOf?(file: HubFile): string | undefined;
}

export interface SourceTarget extends BlobTarget {
  /** Of the whole pull; 0 while it is not known. */
  bytesPerSecond(): number;
  /** `received`: new bytes; `completed`: how many of this file are there. */
  onBytes(received: number, completed: number): void;
}

export interface FetchedFiles {
  /** In the given order. */
  readonly files: readonly CachedFile[];
  readonly downloadedBytes: number;
  /** Bytes that an earlier try had left. */
  readonly resumedBytes: number;
}

/** At most one progress per file in so many milliseconds. */
const progressEvery = 100;

/** Throws `hub_*`, `checksum_mismatch`, `not_a_model`, `disk_full`, `cache_unwritable`, `cancelled`. */
export async function fetchFiles(
  options: FetchOptions,
  repo: string,
  files: readonly HubFile[],
  source: Source,
): Promise<FetchedFiles> {
  const { cacheDir, signal, gateway, onProgress } = options;
  const totalBytes = bytesOf(files);
  const origins = await originsOf(options, repo, files);
  const missing = files.filter((file) => !origins.has(file));
  let resumedBytes = 0;
  for (const file of missing) resumedBytes += await resumableBytes(partialPathOf(options, repo, file), file.size);
  const room = createDiskRoom(() => options.freeBytes(cacheDir));
  if (missing.length > 0) {
    // First: a pull that is refused leaves no folder.
    await room.check(bytesOf(missing) - resumedBytes);
    // Other tools that read the cache warn of a repository without this folder, as one with nothing but a partial would be.
    await orCacheError("its own folder", () => makeFolder(snapshotsFolder(cacheDir, repo)));
  }

  const pace = createPace(steadyNow(), options.tuning?.lookMs);
  const bytesPerSecond = () => pace.bytesPerSecond(steadyNow());
  let done = bytesOf([...origins.keys()]);
  let downloadedBytes = 0;

  async function fetchFile(file: HubFile): Promise<void> {
    let reportedAt = 0;
    const report = (completed: number, phase: PullProgress["phase"] = "downloading"): void => {
      const rate = bytesPerSecond();
      const progress = progressOf(cached(file), completed, done + completed, totalBytes);
      const left = secondsLeft(totalBytes - done - completed, rate);
      onProgress({ ...progress, phase, bytesPerSecond: rate, secondsLeft: left });
    };
    const onBytes = (received: number, completed: number): void => {
      const now = steadyNow();
      pace.add(received, now);
      downloadedBytes += received;
      if (completed < file.size && now - reportedAt < progressEvery) return;
      reportedAt = now;
      report(completed);
    };
    report(await resumableBytes(partialPathOf(options, repo, file), file.size));
    await storeBlob({
      ...options,
      repo,
      file,
      room,
      recordBytes: options.tuning?.recordBytes,
      cloneOf: source.cloneOf?.(file),
      fill: (target) => source.fill(file, { ...target, bytesPerSecond, onBytes }),
      onVerify: () => report(file.size, "verifying"),
    });
  }

  const fresh: HubFile[] = [];
  try {
    for (const file of origins.keys()) {
      onProgress(progressOf(cached(file), file.size, done, totalBytes));
      await requireGguf(cacheDir, repo, file);
    }
    for (const file of missing) {
      await fetchFile(file);
      fresh.push(file);
      await requireGguf(cacheDir, repo, file);
      done += file.size;
    }
    // Not wanted any more: it is not shown then.
    if (signal.aborted) throw cancelled(repo);
  } catch (error) {
    // Whole shards stay for the next try, if there is one. A file that is no model fails every try.
    const isWorthless = toGatewayError(error).code === "not_a_model";
    if (isWorthless) await discardBlobs(cacheDir, repo, files.map(blobName), gateway);
    else if (!keeps(options, signal)) await discardBlobs(cacheDir, repo, fresh.map(blobName), gateway);
    await removeEmptyFolders(cacheDir, repo);
    throw error;
  }
  const found = (file: HubFile): { found?: true } => (origins.get(file) === "found" ? { found: true } : {});
  return {
    files: files.map((file) => ({ ...cached(file), ...found(file) })),
    downloadedBytes,
    resumedBytes,
  };
}

/** Of the files that are there. */
async function originsOf(
  options: FetchOptions,
  repo: string,
  files: readonly HubFile[],
): Promise<Map<HubFile, Origin>> {
  const totalBytes = bytesOf(files);
  const origins = new Map<HubFile, Origin>();
  for (const file of files) {
    const known = bytesOf([...origins.keys()]);
    const origin = await originOf(options, repo, file, () =>
      options.onProgress({ ...progressOf(cached(file), file.size, known, totalBytes), phase: "verifying" }),
    );
    if (origin) origins.set(file, origin);
  }
  return origins;
}

/** The checksum only proves that the bytes are the hub's: a web page named `.gguf` was pulled with `success`. */
async function requireGguf(cacheDir: string, repo: string, file: HubFile): Promise<void> {
  if (!/\.gguf$/i.test(file.path) || (await isWholeGguf(blobPath(cacheDir, repo, blobName(file))))) return;
  throw new GatewayError("not_a_model", `${file.path} of ${repo} is not a whole GGUF file`);
}

function cached(file: HubFile): CachedFile {
  return { path: file.path, blob: blobName(file), size: file.size };
}

function partialPathOf({ cacheDir }: FetchOptions, repo: string, file: HubFile): string {
  return partialPath(cacheDir, repo, blobName(file));
}
