// One model from the hub into the cache: resolve, select, check the room, download, link, and last the ref.
// Decides nothing about whether a model is wanted, and deletes no model.
import { isCommit, repoOf } from "../../core/ids.ts";
import { cancelled } from "../../hub/errors.ts";
import { type CachedFile, partialPath, snapshotPath } from "../layout/layout.ts";
import { blobName, type HubFile, selectFiles } from "../layout/select.ts";
import { type FetchOptions, fetchFiles, modelName } from "./fetch.ts";
import { holdPaths } from "./in-use.ts";
import { carryOver, isLinked, linkSnapshot, readRef, writeRef } from "./link.ts";
import { type Origin, originOf } from "./origin.ts";
import { settleModel } from "./partials.ts";
import { bytesOf, progressOf, resolving } from "./progress.ts";

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
  /** Bytes that an earlier try had left. */
  readonly resumedBytes: number;
  /** Files of the snapshot shown before that the new commit does not have: still on disk, no more listed by the router. */
  readonly leftBehind: readonly string[];
}

export interface PullOptions extends FetchOptions {
  /** Branch, tag or commit; default `main`, the only one that the router lists. */
  readonly revision?: string;
  /** What an earlier pull left: where its blobs are all there, it is linked again without the network. */
  readonly known?: PulledModel;
  /**
   * Called when all blobs are whole, before anything shows them: whoever keeps an inventory writes it now, so that a kill
   * leaves no model that nobody knows.
   */
  readonly beforeShown?: (model: PulledModel) => Promise<void>;
}

/** Throws `hub_*`, `quant_*`, `checksum_mismatch`, `not_a_model`, `disk_full`, `cache_unwritable`, `cancelled`. */
export async function pullModel(options: PullOptions): Promise<PullResult> {
  const repo = repoOf(options.id);
  const revision = options.revision ?? "main";
  if (options.signal.aborted) throw cancelled(repo);
  const relinked = await relinkKnown(options, repo, revision);
  if (relinked) return { ...relinked, downloadedBytes: 0, resumedBytes: 0, leftBehind: [] };

  options.onProgress(resolving);
  const { client, cacheDir, signal } = options;
  const commit = await client.resolveRevision(repo, revision, signal);
  const tree = await client.listTree(repo, commit, signal);
  const selection = selectFiles(repo, options.id.tag, tree);
  const files = [...selection.model, ...(selection.projector ? [selection.projector] : [])];
  for (const file of files) snapshotPath(cacheDir, repo, commit, file.path);

  // Nothing links them yet: a cleaning must see that they are wanted.
  const release = holdPaths(files.map((file) => partialPath(cacheDir, repo, blobName(file))));
  try {
    const fetched = await fetchFiles(options, repo, commit, files);
    const model: PulledModel = { repo, tag: options.id.tag, commit, revision, files: fetched.files };
    const leftBehind = await show(options, model, tree);
    return { ...model, ...fetched, leftBehind };
  } finally {
    release();
  }
}

/** The earlier pull, made visible again, or null where that needs the hub. */
async function relinkKnown(options: PullOptions, repo: string, revision: string): Promise<PulledModel | null> {
  const { known, cacheDir } = options;
  if (!known || known.repo !== repo || known.revision !== revision || known.tag !== options.id.tag) return null;
  if (known.files.length === 0) return null;
  const vouched = (blob: string) => options.vouched?.(blob) ?? originIn(known, blob);
  const totalBytes = bytesOf(known.files);
  for (const file of known.files.map(hubFile)) {
    const onHash = () => options.onProgress({ ...progressOf(file, file.size, 0, totalBytes), phase: "verifying" });
    if (!(await originOf({ ...options, vouched }, repo, file, onHash))) return null;
  }
  const shown = isCommit(revision) ? known.commit : await readRef(cacheDir, repo, revision);
  if (shown !== undefined && shown !== known.commit) {
    // The ref moved on. Only the hub can say whether these files belong to that commit too, unless they are linked there.
    for (const file of known.files) if (!(await isLinked(cacheDir, repo, shown, file))) return null;
    const moved = { ...known, commit: shown };
    await options.beforeShown?.(moved);
    return moved;
  }
  await show(options, known, []);
  return known;
}

/** Links a model whose blobs are all there, keeps what the ref showed before, and moves the ref. */
async function show(options: PullOptions, model: PulledModel, tree: readonly HubFile[]): Promise<readonly string[]> {
  const { cacheDir, gateway, signal } = options;
  const { repo, commit, revision, files } = model;
  const totalBytes = bytesOf(files);
  await options.beforeShown?.(model);
  const [first] = files;
  if (first)
    options.onProgress({ ...progressOf(hubFile(first), first.size, totalBytes, totalBytes), phase: "linking" });
  await linkSnapshot({ cacheDir, repo, commit, files });
  const leftBehind = isCommit(revision) ? [] : await moveRef(model, cacheDir, tree, signal);
  await settleModel({ cacheDir, repo, model: modelName(options), blobs: files.map((file) => file.blob), gateway });
  return leftBehind;
}

async function moveRef(
  { repo, commit, revision }: PulledModel,
  cacheDir: string,
  tree: readonly HubFile[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const before = await readRef(cacheDir, repo, revision);
  if (before === commit) return [];
  const carried =
    before === undefined ? undefined : await carryOver({ cacheDir, repo, from: before, to: commit, tree, signal });
  await writeRef(cacheDir, repo, revision, commit);
  return carried?.leftBehind ?? [];
}

function originIn({ files }: PulledModel, blob: string): Origin | undefined {
  const file = files.find((other) => other.blob === blob);
  return file && (file.found ? "found" : "stored");
}

function hubFile({ path, size, blob }: CachedFile): HubFile {
  return blob.length === 64 ? { path, size, oid: "", sha256: blob } : { path, size, oid: blob };
}
