// A model, or named files, from the hub into the cache: resolve, select, check the disk space, download, link, and last the ref.
// Does not decide whether a model is wanted, and deletes no model.
import { GatewayError } from "../../core/errors.ts";
import { isCommit, type ModelId, repoOf } from "../../core/ids.ts";
import type { HubClient } from "../../hub/client.ts";
import { cancelled } from "../../hub/errors.ts";
import { type CachedFile, partialPath, snapshotPath } from "../layout/layout.ts";
import { blobName, type HubFile, selectFiles } from "../layout/select.ts";
import { type FetchOptions, fetchFiles, type Source } from "./fetch.ts";
import { holdPaths } from "./in-use.ts";
import { carryOver, linkSnapshot, readRef, writeRef } from "./link.ts";
import { settleModel } from "./partials.ts";
import { bytesOf, progressOf, resolving } from "./progress.ts";
import { defaultTuning, type TransferTuning, transfer } from "./transfer.ts";

/** What a pull left in the cache. JSON; goes into the inventory. */
export interface PulledModel {
  /** `owner/name` */
  readonly repo: string;
  /** As it was requested; the files may have other names. */
  readonly tag: string;
  readonly commit: string;
  readonly revision: string;
  /** Shards in order, then the projector. */
  readonly files: readonly CachedFile[];
}

export interface PullResult extends PulledModel {
  /** Bytes that came over the network. */
  readonly downloadedBytes: number;
  /** Bytes that an earlier try had left. */
  readonly resumedBytes: number;
}

/** Set by tests and benchmarks. */
export interface DownloadTuning extends Partial<TransferTuning> {
  readonly recordBytes?: number;
}

export interface HubOptions extends Omit<FetchOptions, "model"> {
  readonly client: HubClient;
  /** Branch, tag or commit; default `main`, the only one that the router lists. */
  readonly revision?: string;
  readonly tuning?: DownloadTuning;
}

export interface PullOptions extends HubOptions, ShowOptions {
  readonly id: ModelId;
}

interface ShowOptions {
  /**
   * Called when all blobs are whole, before anything shows them: the inventory is written now, so that a kill leaves no model
   * that the inventory does not have.
   */
  readonly beforeShown?: (model: PulledModel) => Promise<void>;
}

/** Throws `hub_*`, `quant_*`, `checksum_mismatch`, `not_a_model`, `disk_full`, `cache_unwritable`, `cancelled`. */
export async function pullModel({ id, ...options }: PullOptions): Promise<PullResult> {
  const repo = repoOf(id);
  return fromHub(options, repo, id.tag, (tree) => {
    const { model, projector } = selectFiles(repo, id.tag, tree);
    return [...model, ...(projector ? [projector] : [])];
  });
}

export interface FilesPull extends HubOptions {
  readonly repo: string;
  /** What they are together: leftovers of an interrupted pull are known by `repo:name`. */
  readonly name: string;
  /** In the repository. */
  readonly paths: readonly string[];
}

export interface PulledFiles extends PullResult {
  /** In the order of the paths; `place`: in the cache's snapshot. */
  readonly files: readonly (CachedFile & { readonly place: string })[];
}

/** Voices and transcription models, which are no GGUF. Throws `hub_*`, `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`. */
export async function pullFiles({ repo, name, paths, ...options }: FilesPull): Promise<PulledFiles> {
  const pulled = await fromHub(options, repo, name, (tree) => paths.map((path) => requireFile(tree, repo, path)));
  const { cacheDir } = options;
  const files = pulled.files.map((file) => ({
    ...file,
    place: snapshotPath(cacheDir, repo, pulled.commit, file.path),
  }));
  return { ...pulled, files };
}

function requireFile(tree: readonly HubFile[], repo: string, path: string): HubFile {
  const file = tree.find((entry) => entry.path.normalize("NFC") === path.normalize("NFC"));
  if (file) return file;
  throw new GatewayError("hub_not_found", `${repo} has no file ${path}`);
}

async function fromHub(
  options: HubOptions & ShowOptions,
  repo: string,
  tag: string,
  select: (tree: readonly HubFile[]) => readonly HubFile[],
): Promise<PullResult> {
  const { client, cacheDir, signal, revision = "main" } = options;
  if (signal.aborted) throw cancelled(repo);
  options.onProgress(resolving);
  const commit = await client.resolveRevision(repo, revision, signal);
  const tree = await client.listTree(repo, commit, signal);
  const files = select(tree);
  // Names come from outside: each is checked before anything is written.
  for (const file of files) snapshotPath(cacheDir, repo, commit, file.path);
  const tuning = { ...defaultTuning, ...options.tuning };
  const source: Source = {
    fill: (file, target) => transfer({ ...options, ...target, repo, commit, file, plain: target.isSecondTry, tuning }),
  };
  const wanted = { ...options, model: `${repo}:${tag}` };
  return holding(cacheDir, repo, files, async () => {
    const fetched = await fetchFiles(wanted, repo, files, source);
    const model: PulledModel = { repo, tag, commit, revision, files: fetched.files };
    await show(wanted, model, tree);
    return { ...fetched, ...model };
  });
}

/** Runs `work` while the files are in use: nothing links them yet, and a garbage collection must see that they are wanted. */
export async function holding<T>(
  cacheDir: string,
  repo: string,
  files: readonly HubFile[],
  work: () => Promise<T>,
): Promise<T> {
  const release = holdPaths(files.map((file) => partialPath(cacheDir, repo, blobName(file))));
  try {
    return await work();
  } finally {
    release();
  }
}

/** Links a model whose blobs are all there, links what the ref showed before beside it, and moves the ref. */
export async function show(
  options: FetchOptions & ShowOptions,
  pulled: PulledModel,
  tree: readonly HubFile[],
): Promise<void> {
  const { cacheDir, gateway, model } = options;
  const { repo, commit, revision, files } = pulled;
  await options.beforeShown?.(pulled);
  const [first] = files;
  if (first) {
    const totalBytes = bytesOf(files);
    options.onProgress({ ...progressOf(first, first.size, totalBytes, totalBytes), phase: "linking" });
  }
  await linkSnapshot({ cacheDir, repo, commit, files });
  const before = isCommit(revision) ? commit : await readRef(cacheDir, repo, revision);
  if (before !== undefined && before !== commit) await carryOver({ cacheDir, repo, from: before, to: commit, tree });
  if (before !== commit) await writeRef(cacheDir, repo, revision, commit);
  await settleModel({ cacheDir, repo, model, blobs: files.map(({ blob }) => blob), gateway });
}
