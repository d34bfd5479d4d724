// Brings the files of a model into the cache: finds what is missing, stores it as partials, and when all are whole makes them
// blobs, links them and moves the ref. Where the bytes come from is the source's matter: the hub's or a local file's.
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { isCommit } from "../../core/ids.ts";
import { unlessLeft } from "../../core/unless-left.ts";
import { cacheError, cancelled, isStopping, orCacheError } from "../../hub/errors.ts";
import { makeFolder } from "../../state/folder.ts";
import { isWholeGguf } from "../gguf/metadata.ts";
import { blobPath, type CachedFile, partialPath, repoFolder, snapshotsFolder } from "../layout/layout.ts";
import { blobName, type HubFile } from "../layout/select.ts";
import { createDiskSpace, type DiskSpace } from "./disk-space.ts";
import { coveredBytes, type Extents, frontOf } from "./extents.ts";
import { following, hasDigest, isGitDigest } from "./hash.ts";
import { holdPaths } from "./in-use.ts";
import { cleanRepo, removeEmptyFolders } from "./leftovers.ts";
import { carryOver, linkBlob, linkSnapshot, readRef, writeRef } from "./link.ts";
import { fileAt, kept, openPartial, type PartialFile } from "./partial-file.ts";
import type { PartialEntry } from "./partials.ts";
import { createReporter, type PullProgress, type Reporter } from "./progress.ts";
import { mismatch } from "./transfer.ts";

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
  /** Bytes that came over the network, or from the local file. */
  readonly downloadedBytes: number;
  /** Bytes that an earlier try had left. */
  readonly resumedBytes: number;
}

/** Of a blob that has been checked: this gateway stored it, or found it there, stored by another program. */
export type Origin = "stored" | "found";

export interface FetchOptions {
  readonly cacheDir: string;
  /** Id of this gateway: by it unfinished files are known to be its own after a restart. */
  readonly gateway: string;
  /** What an earlier check of a blob of this name found, as far as it is remembered; others are hashed. */
  readonly vouched?: (blob: string) => Origin | undefined;
  /** Hash those too that are vouched for. */
  readonly verify?: boolean | undefined;
  /** Whether there will be another try, for which a failure leaves what is there. A shutdown always leaves it. */
  readonly isStillWanted?: () => boolean;
  readonly signal: AbortSignal;
  /** Free bytes of the disk of a folder; undefined if they are not known. */
  freeBytes(folder: string): Promise<number | undefined>;
  /**
   * Called when all files are whole, before anything shows them: the inventory is written now, so that a kill leaves no model
   * that the inventory does not have.
   */
  readonly beforeShown?: (model: PulledModel) => Promise<void>;
  onProgress(progress: PullProgress): void;
  /** Set by tests. */
  readonly tuning?: { readonly recordBytes?: number };
}

/** The files of one model, and where their bytes come from. */
export interface Delivery extends Omit<PulledModel, "files"> {
  readonly files: readonly HubFile[];
  /** All files of the commit. */
  readonly tree: readonly HubFile[];
  /** Brings what a partial lacks. */
  fill(file: HubFile, target: Target): Promise<void>;
  /** A local file with the same bytes. */
  readonly cloneOf?: (file: HubFile) => string | undefined;
  /** A local file with the same bytes that is never written again: the blob becomes a link to it, which takes no disk space. */
  readonly linkOf?: (file: HubFile) => string | undefined;
}

export interface Target {
  readonly partial: PartialFile;
  /** What came before was wrong: the whole file in one piece. */
  readonly isPlain: boolean;
  write(position: number, buffers: readonly Buffer[]): Promise<void>;
  /** Another thread wrote `received` bytes; `written` is all that is there now. */
  note(written: Extents, received: number): Promise<void>;
}

/** By folder of a repository: its pulls run one after the other, as they may share files. */
const running = new Map<string, Promise<unknown>>();

/** Throws `hub_*`, `checksum_mismatch`, `not_a_model`, `disk_full`, `cache_unwritable`, `cancelled`. */
export async function bring(options: FetchOptions, delivery: Delivery): Promise<PullResult> {
  const { cacheDir, gateway, signal } = options;
  const { repo, files } = delivery;
  const folder = repoFolder(cacheDir, repo);
  const blobs = files.map(blobName);
  const model = modelOf(delivery).toLowerCase();
  const isOurs = ({ gateway: owner, sidecar }: PartialEntry): boolean =>
    owner === gateway && sidecar?.model.toLowerCase() === model;
  // From now on, so that a pull that runs before this one leaves what both count on.
  const release = holdPaths(blobs.map((name) => partialPath(cacheDir, repo, name)));
  try {
    for (let other = running.get(folder); other; other = running.get(folder)) await unlessLeft(other, signal);
    const work = bringInTurn(options, delivery).finally(() => running.delete(folder));
    running.set(folder, work.catch(ignore));
    const result = await work;
    release();
    // What kills left beside the blobs, and what a pull of an older commit left for this model.
    await cleanRepo(cacheDir, repo, gateway, (entry) => isOurs(entry) || blobs.includes(entry.digest));
    return result;
  } catch (error) {
    release();
    const hasNextTry = isStopping(signal) || options.isStillWanted?.() === true;
    // What is no model fails every try. The failure says more than one of the cleaning would.
    if (!hasNextTry || toGatewayError(error).code === "not_a_model")
      await cleanRepo(cacheDir, repo, gateway, isOurs).catch(ignore);
    await removeEmptyFolders(cacheDir, repo);
    throw error;
  }
}

async function bringInTurn(options: FetchOptions, delivery: Delivery): Promise<PullResult> {
  const { cacheDir, signal, gateway, tuning } = options;
  const { repo, files, cloneOf, linkOf } = delivery;
  const progress = createReporter(files, options.onProgress);
  const space = createDiskSpace(() => options.freeBytes(cacheDir));
  /** By blob; each is locked until its end. */
  const partials = new Map<string, PartialFile>();
  /** By blob, what it becomes a link to. */
  const links = new Map<string, string>();
  try {
    const origins = await originsOf(options, delivery, progress);
    for (const file of files) {
      const original = origins.has(file) ? undefined : linkOf?.(file);
      if (original !== undefined) links.set(blobName(file), original);
    }
    const missing = files.filter((file) => !origins.has(file) && !links.has(blobName(file)));
    const resumedBytes = await keptBytes(cacheDir, repo, missing);
    if (missing.length > 0) {
      // First: a pull that is refused leaves no folder.
      await space.check(missing.reduce((sum, { size }) => sum + size, -resumedBytes));
      // Other tools that read the cache warn of a repository without this folder, as one with nothing but a partial would be.
      await orCacheError("its own folder", () => makeFolder(snapshotsFolder(cacheDir, repo)));
    }
    for (const file of files) {
      const name = blobName(file);
      if (missing.includes(file) && !partials.has(name)) {
        const path = partialPath(cacheDir, repo, name);
        const about = { model: modelOf(delivery), size: file.size, gateway };
        const partial = await openPartial({
          path,
          ...about,
          cloneOf: cloneOf?.(file),
          recordBytes: tuning?.recordBytes,
        });
        partials.set(name, partial);
        await store({ options, delivery, file, partial, space, progress });
      }
      await requireGguf(repo, file, links.get(name) ?? partials.get(name)?.path ?? blobPath(cacheDir, repo, name));
    }
    // Not wanted any more: it is not shown then.
    if (signal.aborted) throw cancelled(repo);
    const pulled = pulledModel(delivery, origins);
    await options.beforeShown?.(pulled);
    const [first] = files;
    if (first) progress.report(first, first.size, "linking");
    for (const [name, partial] of partials) await partial.finish(blobPath(cacheDir, repo, name));
    for (const [name, original] of links) await linkBlob(cacheDir, repo, name, original);
    await show(cacheDir, pulled, delivery.tree);
    return { ...pulled, downloadedBytes: progress.downloadedBytes(), resumedBytes };
  } catch (error) {
    for (const partial of partials.values()) await partial.keep().catch(ignore);
    throw await space.explain(cacheError(error, repo), progress.left());
  }
}

/** Links what the ref showed before into the new commit, then a model whose blobs are all there, and moves the ref. */
async function show(cacheDir: string, pulled: PulledModel, tree: readonly HubFile[]): Promise<void> {
  const { repo, commit, revision, files } = pulled;
  const link = (): Promise<void> => linkSnapshot({ cacheDir, repo, commit, files });
  const before = isCommit(revision) ? commit : await readRef(cacheDir, repo, revision);
  if (before === commit) return link();
  if (before !== undefined) await carryOver({ cacheDir, repo, from: before, to: commit, tree });
  await writeRef(cacheDir, repo, revision, commit, link);
}

interface Storing {
  readonly options: FetchOptions;
  readonly delivery: Delivery;
  readonly file: HubFile;
  readonly partial: PartialFile;
  readonly space: DiskSpace;
  readonly progress: Reporter;
}

async function store(storing: Storing): Promise<void> {
  const { file, partial, progress } = storing;
  progress.report(file, coveredBytes(partial.extents()));
  if (partial.isVerified()) return;
  // What was kept of an earlier try may be wrong, or the ranges of a server: then once more, all in one piece.
  for (const isPlain of [false, true]) {
    if (await isFilledRight(storing, isPlain)) return partial.setVerified();
    partial.forgetFrom(0);
  }
  throw mismatch(file, "other bytes than its digest promises");
}

/** Brings what the partial lacks; answers whether it is the right file then. */
function isFilledRight(storing: Storing, isPlain: boolean): Promise<boolean> {
  const { options, delivery, file, partial, space, progress } = storing;
  const name = blobName(file);
  const job = { path: partial.path, size: file.size, isGit: isGitDigest(name) };
  return following(job, options.signal, async (follower) => {
    // The digest cannot be kept over a restart; the thread reads the prefix again while the rest comes in.
    follower.advance(frontOf(partial.extents()));
    const tell = (received: number): void => {
      follower.advance(frontOf(partial.extents()));
      progress.receive(file, received, coveredBytes(partial.extents()));
    };
    await delivery.fill(file, {
      partial,
      isPlain,
      async write(position, buffers) {
        await space.watch(progress.left());
        tell(await partial.write(position, buffers));
      },
      async note(written, received) {
        // First: these bytes are on the disk already, and a pull that stops here resumes behind them.
        partial.note(written, received);
        tell(received);
        await space.watch(progress.left());
      },
    });
    progress.report(file, file.size, "verifying");
    follower.advance(file.size);
    return (await follower.digest()) === name;
  });
}

/**
 * Of the blobs that are there and right. One that nothing vouches for is hashed: another tool may have been cut off by a power
 * failure, and the blob's name is the only evidence.
 */
async function originsOf(
  options: FetchOptions,
  { repo, files }: Delivery,
  progress: Reporter,
): Promise<Map<HubFile, Origin>> {
  const origins = new Map<HubFile, Origin>();
  for (const file of files) {
    const name = blobName(file);
    const path = blobPath(options.cacheDir, repo, name);
    if ((await fileAt(path))?.size !== file.size) continue;
    const known = options.vouched?.(name);
    const isTrusted = known !== undefined && options.verify !== true;
    progress.report(file, file.size, isTrusted ? "downloading" : "verifying");
    if (isTrusted || (await hasDigest(path, name, options.signal))) origins.set(file, known ?? "found");
  }
  return origins;
}

/** Bytes of missing files that an earlier try left. */
async function keptBytes(cacheDir: string, repo: string, files: readonly HubFile[]): Promise<number> {
  let bytes = 0;
  for (const file of files)
    bytes += coveredBytes((await kept(partialPath(cacheDir, repo, blobName(file)), file.size)).written);
  return bytes;
}

/** The checksum only proves that the bytes are the hub's: a web page named `.gguf` was pulled with `success`. */
async function requireGguf(repo: string, file: HubFile, place: string): Promise<void> {
  if (!/\.gguf$/i.test(file.path) || (await isWholeGguf(place))) return;
  throw new GatewayError("not_a_model", `${file.path} of ${repo} is not a whole GGUF file`);
}

function pulledModel(
  { repo, tag, commit, revision, files }: Delivery,
  origins: ReadonlyMap<HubFile, Origin>,
): PulledModel {
  const cached = files.map((file): CachedFile => {
    const found: { found?: true } = origins.get(file) === "found" ? { found: true } : {};
    return { path: file.path, blob: blobName(file), size: file.size, ...found };
  });
  return { repo, tag, commit, revision, files: cached };
}

/** Sidecars name the model of a partial by it. */
function modelOf({ repo, tag }: Pick<PulledModel, "repo" | "tag">): string {
  return `${repo}:${tag}`;
}

function ignore(): void {
  // The failure is thrown to the pull's own caller.
}
