// One model from the hub into the cache: resolve, select, check the room, download, link, and last the ref.
// Decides nothing about whether a model is wanted, and deletes no model.
import { mkdir, rm, rmdir } from "node:fs/promises";
import { GatewayError } from "../core/errors.ts";
import { type ModelId, repoOf } from "../core/ids.ts";
import type { HubClient } from "./client.ts";
import { blobName, digestsMatch, downloadBlob, hasBlob, hashFile } from "./download.ts";
import { cacheError, cancelled } from "./errors.ts";
import { blobPath, blobsFolder, type CachedFile, isCommit, repoFolder, snapshotPath } from "./layout.ts";
import { carryOver, isLinked, linkSnapshot, readRef, writeRef } from "./link.ts";
import { type HubFile, selectFiles } from "./select.ts";

export interface PullProgress {
  /** Path in the repository; empty while resolving. */
  readonly file: string;
  /** `sha256:…`, or `sha1:…` (git's) for a small file outside LFS; empty while resolving. */
  readonly digest: string;
  /** Bytes of this file. */
  readonly completed: number;
  readonly total: number;
  /** Bytes of the whole model. */
  readonly totalCompleted: number;
  readonly totalBytes: number;
  readonly phase: "resolving" | "downloading" | "verifying" | "linking";
}

/** What a pull left in the cache. JSON; goes into the inventory. */
export interface PulledModel {
  /** `owner/name` */
  readonly repo: string;
  /** As it was asked for; the files may be called otherwise. */
  readonly tag: string;
  readonly commit: string;
  readonly revision: string;
  /** Shards in order, then the projector. */
  readonly files: readonly CachedFile[];
}

export interface PullResult extends PulledModel {
  /** Bytes that came over the network. */
  readonly downloadedBytes: number;
  /** Files of the snapshot shown before that the new commit does not have: still on disk, no more listed by the router. */
  readonly leftBehind: readonly string[];
}

export interface PullOptions {
  readonly client: HubClient;
  readonly cacheDir: string;
  readonly id: ModelId;
  /** Branch, tag or commit; default `main`, the only one that the router lists. */
  readonly revision?: string;
  /** What an earlier pull left: where its blobs are all there, it is linked again without the network. */
  readonly known?: PulledModel;
  /** Hash blobs that are there already, and download those again that are not what their name says. */
  readonly verify?: boolean;
  /** Free bytes where a folder lives; undefined where that cannot be told. */
  freeBytes(folder: string): Promise<number | undefined>;
  readonly signal: AbortSignal;
  onProgress(progress: PullProgress): void;
}

/** Left free on the disk, for everything else that lives there. */
export const reserveBytes = 256 * 1024 * 1024;

/** Progress of one file is told at most this often, in milliseconds. */
const progressEvery = 100;

/** Throws `hub_*`, `quant_*`, `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`; then no partial is left. */
export async function pullModel(options: PullOptions): Promise<PullResult> {
  const repo = repoOf(options.id);
  const revision = options.revision ?? "main";
  if (options.signal.aborted) throw cancelled(repo);
  const relinked = await relinkKnown(options, repo, revision);
  if (relinked) return { ...relinked, downloadedBytes: 0, leftBehind: [] };

  options.onProgress(resolving);
  const { client, cacheDir, signal } = options;
  const commit = await client.resolveRevision(repo, revision, signal);
  const tree = await client.listTree(repo, commit, signal);
  const selection = selectFiles(repo, options.id.tag, tree);
  const files = [...selection.model, ...(selection.projector ? [selection.projector] : [])];
  for (const file of files) snapshotPath(cacheDir, repo, commit, file.path);

  const downloadedBytes = await fetchFiles(options, repo, commit, files);
  const model: PulledModel = { repo, tag: options.id.tag, commit, revision, files: files.map(cachedFile) };
  const leftBehind = await show(options, model, tree);
  return { ...model, downloadedBytes, leftBehind };
}

const resolving: PullProgress = {
  file: "",
  digest: "",
  completed: 0,
  total: 0,
  totalCompleted: 0,
  totalBytes: 0,
  phase: "resolving",
};

/** The earlier pull, made visible again, or null where that needs the hub. */
async function relinkKnown(options: PullOptions, repo: string, revision: string): Promise<PulledModel | null> {
  const { known, cacheDir } = options;
  if (!known || known.repo !== repo || known.revision !== revision || known.tag !== options.id.tag) return null;
  if (known.files.length === 0) return null;
  for (const file of known.files) if (!(await isGood(options, repo, hubFile(file)))) return null;
  const shown = isCommit(revision) ? known.commit : await readRef(cacheDir, repo, revision);
  if (shown !== undefined && shown !== known.commit) {
    // The ref moved on. Only the hub can say whether these files belong to that commit too, unless they are linked there.
    for (const file of known.files) if (!(await isLinked(cacheDir, repo, shown, file))) return null;
    return { ...known, commit: shown };
  }
  await show(options, known, []);
  return known;
}

/** Links a model whose blobs are all there, keeps what the ref showed before, and moves the ref. */
async function show(options: PullOptions, model: PulledModel, tree: readonly HubFile[]): Promise<readonly string[]> {
  const { cacheDir, signal } = options;
  const { repo, commit, revision, files } = model;
  const totalBytes = bytesOf(files);
  const [first] = files;
  if (first)
    options.onProgress({ ...progressOf(hubFile(first), first.size, totalBytes, totalBytes), phase: "linking" });
  await linkSnapshot({ cacheDir, repo, commit, files });
  if (isCommit(revision)) return [];
  const before = await readRef(cacheDir, repo, revision);
  if (before === commit) return [];
  const carried =
    before === undefined ? undefined : await carryOver({ cacheDir, repo, from: before, to: commit, tree, signal });
  await writeRef(cacheDir, repo, revision, commit);
  return carried?.leftBehind ?? [];
}

async function fetchFiles(
  options: PullOptions,
  repo: string,
  commit: string,
  files: readonly HubFile[],
): Promise<number> {
  const missing = new Set<HubFile>();
  for (const file of files) if (!(await isGood(options, repo, file))) missing.add(file);
  const needed = bytesOf([...missing]);
  if (missing.size > 0) await checkRoom(options, needed);

  const totalBytes = bytesOf(files);
  const fresh: HubFile[] = [];
  let done = totalBytes - needed;
  try {
    for (const file of files) {
      if (!missing.has(file)) options.onProgress(progressOf(file, file.size, done, totalBytes));
    }
    for (const file of missing) {
      await fetchFile(options, { repo, commit, file, done, totalBytes });
      fresh.push(file);
      done += file.size;
    }
  } catch (error) {
    await tidy(options, repo, fresh);
    throw error;
  }
  return needed;
}

interface FileTurn {
  readonly repo: string;
  readonly commit: string;
  readonly file: HubFile;
  /** Bytes of the model that were there before this file. */
  readonly done: number;
  readonly totalBytes: number;
}

async function fetchFile(options: PullOptions, { repo, commit, file, done, totalBytes }: FileTurn): Promise<void> {
  const { client, cacheDir, signal } = options;
  let told = 0;
  const tell = (completed: number) => options.onProgress(progressOf(file, completed, done + completed, totalBytes));
  tell(0);
  await downloadBlob({
    client,
    cacheDir,
    repo,
    commit,
    file,
    signal,
    onBytes(completed) {
      const now = Date.now();
      if (completed < file.size && now - told < progressEvery) return;
      told = now;
      tell(completed);
    },
    onVerify() {
      options.onProgress({ ...progressOf(file, file.size, done + file.size, totalBytes), phase: "verifying" });
    },
  });
}

async function isGood({ cacheDir, verify, signal }: PullOptions, repo: string, file: HubFile): Promise<boolean> {
  if (!(await hasBlob(cacheDir, repo, file))) return false;
  return verify !== true || digestsMatch(file, await hashFile(blobPath(cacheDir, repo, blobName(file)), signal));
}

async function checkRoom({ cacheDir, freeBytes }: PullOptions, needed: number): Promise<void> {
  await mkdir(cacheDir, { recursive: true }).catch((error: unknown) => {
    throw cacheError(error, "its own folder");
  });
  const free = await freeBytes(cacheDir);
  if (free === undefined || free >= needed + reserveBytes) return;
  const lacking = needed + reserveBytes - free;
  throw new GatewayError(
    "disk_full",
    `The download needs ${inMiB(needed)}, and ${inMiB(reserveBytes)} stay free; the model cache's disk has ${inMiB(free)}: ${inMiB(lacking)} are missing.`,
  );
}

/**
 * After a failure: shards that are whole stay for the next try, unless nobody wants the model any more. Then they would
 * lie there unseen, as nothing links them.
 */
async function tidy({ cacheDir, signal }: PullOptions, repo: string, fresh: readonly HubFile[]): Promise<void> {
  const stopping = signal.reason instanceof GatewayError && signal.reason.code === "shutting_down";
  if (signal.aborted && !stopping) {
    for (const file of fresh) await rm(blobPath(cacheDir, repo, blobName(file)), { force: true });
  }
  // rmdir takes only empty folders: an unfinished first pull leaves none, anything else stays.
  for (const folder of [blobsFolder(cacheDir, repo), repoFolder(cacheDir, repo)])
    await rmdir(folder).catch(() => undefined);
}

function progressOf(file: HubFile, completed: number, totalCompleted: number, totalBytes: number): PullProgress {
  const digest = `${file.sha256 === undefined ? "sha1" : "sha256"}:${blobName(file)}`;
  return { file: file.path, digest, completed, total: file.size, totalCompleted, totalBytes, phase: "downloading" };
}

function cachedFile(file: HubFile): CachedFile {
  return { path: file.path, blob: blobName(file), size: file.size };
}

function hubFile({ path, size, blob }: CachedFile): HubFile {
  return blob.length === 64 ? { path, size, oid: "", sha256: blob } : { path, size, oid: blob };
}

function bytesOf(files: readonly { readonly size: number }[]): number {
  return files.reduce((sum, file) => sum + file.size, 0);
}

function inMiB(bytes: number): string {
  return `${Math.ceil(bytes / (1024 * 1024)).toLocaleString("en")} MiB`;
}
