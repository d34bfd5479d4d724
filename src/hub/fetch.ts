// The files of one model that the cache lacks: the room they need, one download after the other, and what is told of it.
// Links nothing.
import { rm } from "node:fs/promises";
import { type ModelId, repoOf } from "../core/ids.ts";
import { steadyNow } from "../core/steady.ts";
import { makeFolder } from "../desired/folder.ts";
import type { HubClient } from "./client.ts";
import { type DownloadTuning, downloadBlob, hasBlob } from "./download.ts";
import { removeIfEmpty } from "./emptied.ts";
import { cacheError, isStopping } from "./errors.ts";
import { digestsMatch, hashFile } from "./hash.ts";
import { blobPath, blobsFolder, partialPath, repoFolder, snapshotsFolder } from "./layout.ts";
import { createPace, type Pace, secondsLeft } from "./pace.ts";
import { partialBytes, removePartial } from "./partial-file.ts";
import { bytesOf, type PullProgress, progressOf } from "./progress.ts";
import { createRoom, type Room } from "./room.ts";
import { blobName, type HubFile } from "./select.ts";

export interface FetchOptions {
  readonly client: HubClient;
  readonly cacheDir: string;
  readonly id: ModelId;
  /** Hash blobs that are there already, and download those again that are not what their name says. */
  readonly verify?: boolean;
  /**
   * Whether a failure, or the gateway's stop, leaves what a later pull can go on with, whole shards and partials: true
   * where there will be one. Nothing is left of a pull that was cancelled otherwise.
   */
  readonly keepPartial?: boolean;
  readonly tuning?: DownloadTuning;
  /** Free bytes where a folder lives; undefined where that cannot be told. */
  freeBytes(folder: string): Promise<number | undefined>;
  readonly signal: AbortSignal;
  onProgress(progress: PullProgress): void;
}

/** Progress of one file is told at most this often, in milliseconds. */
const progressEvery = 100;

/** Throws `hub_*`, `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`. */
export async function fetchFiles(
  options: FetchOptions,
  repo: string,
  commit: string,
  files: readonly HubFile[],
): Promise<{ downloadedBytes: number; resumedBytes: number }> {
  const { cacheDir } = options;
  const missing = new Set<HubFile>();
  let resumedBytes = 0;
  for (const file of files) {
    if (await isGood(options, repo, file)) continue;
    missing.add(file);
    resumedBytes += await partialBytes(partialPath(cacheDir, repo, blobName(file)), file.size);
  }
  const room = createRoom(() => options.freeBytes(cacheDir));
  if (missing.size > 0) {
    // First: a pull that is refused leaves no folder.
    await room.check(bytesOf([...missing]) - resumedBytes);
    // Other tools that read the cache warn of a repository without this folder, as one with nothing but a partial would be.
    await makeFolder(snapshotsFolder(cacheDir, repo)).catch((error: unknown) => {
      throw cacheError(error, "its own folder");
    });
  }

  const totalBytes = bytesOf(files);
  const turn = { repo, commit, totalBytes, room, pace: createPace(steadyNow()) };
  const fresh: HubFile[] = [];
  let done = totalBytes - bytesOf([...missing]);
  let downloadedBytes = 0;
  try {
    for (const file of files) {
      if (!missing.has(file)) options.onProgress(progressOf(file, file.size, done, totalBytes));
    }
    for (const file of missing) {
      downloadedBytes += await fetchFile(options, { ...turn, file, done });
      fresh.push(file);
      done += file.size;
    }
  } catch (error) {
    await tidy(options, repo, fresh);
    throw error;
  }
  return { downloadedBytes, resumedBytes };
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
  const blob = partialPath(options.cacheDir, turn.repo, blobName(file));
  tell(await partialBytes(blob, file.size), steadyNow());
  await downloadBlob({
    ...options,
    ...turn,
    file,
    model: modelName(options),
    keepPartial: options.keepPartial === true,
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

/** Whether the blob is there and, where that is asked for, has the content that its name says. */
export async function isGood(
  { cacheDir, verify, signal }: FetchOptions,
  repo: string,
  file: HubFile,
): Promise<boolean> {
  if (!(await hasBlob(cacheDir, repo, file))) return false;
  return verify !== true || digestsMatch(file, await hashFile(blobPath(cacheDir, repo, blobName(file)), signal));
}

/**
 * After a failure: shards that are whole stay for the next try, where there will be one. Else they would lie there
 * unseen, as nothing links them.
 */
async function tidy(
  { cacheDir, signal, keepPartial }: FetchOptions,
  repo: string,
  fresh: readonly HubFile[],
): Promise<void> {
  if (!keepPartial || (signal.aborted && !isStopping(signal))) {
    for (const file of fresh) {
      await rm(blobPath(cacheDir, repo, blobName(file)), { force: true });
      await removePartial(partialPath(cacheDir, repo, blobName(file)));
    }
  }
  // An unfinished first pull leaves no folders; where something stays, all of them do.
  if (await isEmptied(blobsFolder(cacheDir, repo)))
    for (const folder of [snapshotsFolder(cacheDir, repo), repoFolder(cacheDir, repo)]) await isEmptied(folder);
}

/** A folder that cannot be removed is no reason to hide why the pull failed. */
function isEmptied(folder: string): Promise<boolean> {
  return removeIfEmpty(folder).catch(() => false);
}

/** By which journals say whose a partial is. */
export function modelName({ id }: Pick<FetchOptions, "id">): string {
  return `${repoOf(id)}:${id.tag}`;
}
