// The files of one model that the cache lacks: the room they need, one download after the other, and what is told of it.
// Links nothing.
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { type ModelId, repoOf } from "../../core/ids.ts";
import { steadyNow } from "../../core/steady.ts";
import type { HubClient } from "../../hub/client.ts";
import { cacheError, cancelled } from "../../hub/errors.ts";
import { makeFolder } from "../../state/folder.ts";
import { isWholeGguf } from "../gguf/metadata.ts";
import { blobPath, type CachedFile, partialPath, snapshotsFolder } from "../layout/layout.ts";
import { blobName, type HubFile } from "../layout/select.ts";
import { createRoom, type Room } from "./disk-space.ts";
import { type DownloadTuning, downloadBlob } from "./download.ts";
import { type Origin, type OriginOptions, originOf } from "./origin.ts";
import { createPace, type Pace, secondsLeft } from "./pace.ts";
import { resumableBytes } from "./partial-file.ts";
import { bytesOf, type PullProgress, progressOf } from "./progress.ts";
import { type KeepRules, keeps } from "./store-blob.ts";
import { discardBlobs, removeEmptyFolders } from "./tidy.ts";

export interface FetchOptions extends KeepRules, OriginOptions {
  readonly client: HubClient;
  readonly id: ModelId;
  readonly tuning?: DownloadTuning;
  /** Free bytes where a folder lives; undefined where that cannot be told. */
  freeBytes(folder: string): Promise<number | undefined>;
  onProgress(progress: PullProgress): void;
}

/** Progress of one file is told at most this often, in milliseconds. */
const progressEvery = 100;

/** Answers with the files as they lie there. Throws `hub_*`, `checksum_mismatch`, `not_a_model`, `disk_full`, `cache_unwritable`, `cancelled`. */
export async function fetchFiles(
  options: FetchOptions,
  repo: string,
  commit: string,
  files: readonly HubFile[],
): Promise<{ readonly files: readonly CachedFile[]; readonly downloadedBytes: number; readonly resumedBytes: number }> {
  const { cacheDir, signal, gateway } = options;
  const totalBytes = bytesOf(files);
  const origins = new Map<HubFile, Origin>();
  let resumedBytes = 0;
  let needed = 0;
  for (const file of files) {
    const known = bytesOf([...origins.keys()]);
    const origin = await originOf(options, repo, file, () =>
      options.onProgress({ ...progressOf(file, file.size, known, totalBytes), phase: "verifying" }),
    );
    if (origin) origins.set(file, origin);
    else {
      const left = await resumableBytes(partialPath(cacheDir, repo, blobName(file)), file.size);
      resumedBytes += left;
      needed += file.size - left;
    }
  }
  const missing = files.filter((file) => !origins.has(file));
  const room = createRoom(() => options.freeBytes(cacheDir));
  if (missing.length > 0) {
    // First: a pull that is refused leaves no folder.
    await room.check(needed);
    // Other tools that read the cache warn of a repository without this folder, as one with nothing but a partial would be.
    await makeFolder(snapshotsFolder(cacheDir, repo)).catch((error: unknown) => {
      throw cacheError(error, "its own folder");
    });
  }

  const turn = { repo, commit, totalBytes, room, pace: createPace(steadyNow(), options.tuning?.lookMs) };
  const fresh: HubFile[] = [];
  let done = bytesOf([...origins.keys()]);
  let downloadedBytes = 0;
  try {
    for (const file of origins.keys()) {
      options.onProgress(progressOf(file, file.size, done, totalBytes));
      await requireGguf(cacheDir, repo, file);
    }
    for (const file of missing) {
      downloadedBytes += await fetchFile(options, { ...turn, file, done });
      fresh.push(file);
      await requireGguf(cacheDir, repo, file);
      done += file.size;
    }
    // Nobody wants it any more: it is not shown then.
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
    files: files.map((file) => ({ path: file.path, blob: blobName(file), size: file.size, ...found(file) })),
    downloadedBytes,
    resumedBytes,
  };
}

/** The checksum only proves that the bytes are the hub's: a web page named `.gguf` was pulled with `success`. */
async function requireGguf(cacheDir: string, repo: string, file: HubFile): Promise<void> {
  if (!/\.gguf$/i.test(file.path) || (await isWholeGguf(blobPath(cacheDir, repo, blobName(file))))) return;
  throw new GatewayError("not_a_model", `${file.path} of ${repo} is not a whole GGUF file`);
}

interface FileTurn {
  readonly repo: string;
  readonly commit: string;
  readonly file: HubFile;
  /** Bytes of the model that were there before this file. */
  readonly done: number;
  readonly totalBytes: number;
  readonly room: Room;
  readonly pace: Pace;
}

/** Answers with the bytes that came over the network. */
async function fetchFile(options: FetchOptions, { file, done, totalBytes, pace, ...turn }: FileTurn): Promise<number> {
  let told = 0;
  let total = 0;
  const tell = (completed: number, now: number, phase: PullProgress["phase"] = "downloading") => {
    const bytesPerSecond = pace.bytesPerSecond(now);
    const rest = secondsLeft(totalBytes - done - completed, bytesPerSecond);
    const progress = progressOf(file, completed, done + completed, totalBytes);
    options.onProgress({ ...progress, phase, bytesPerSecond, secondsLeft: rest });
  };
  const partial = partialPath(options.cacheDir, turn.repo, blobName(file));
  tell(await resumableBytes(partial, file.size), steadyNow());
  await downloadBlob({
    ...options,
    ...turn,
    file,
    model: modelName(options),
    bytesPerSecond: () => pace.bytesPerSecond(steadyNow()),
    onBytes(received, completed) {
      const now = steadyNow();
      pace.add(received, now);
      total += received;
      if (completed < file.size && now - told < progressEvery) return;
      told = now;
      tell(completed, now);
    },
    onVerify() {
      tell(file.size, steadyNow(), "verifying");
    },
  });
  return total;
}

/** By which sidecars name the model of a partial. */
export function modelName({ id }: Pick<FetchOptions, "id">): string {
  return `${repoOf(id)}:${id.tag}`;
}
