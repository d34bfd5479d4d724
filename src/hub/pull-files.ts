// Named files of a repository into the cache, as whole and verified as a model's: for voices and transcription models, which
// are no GGUF. Selects nothing: the caller names the paths.
import { mkdir } from "node:fs/promises";
import { GatewayError } from "../core/errors.ts";
import type { HubClient } from "./client.ts";
import { blobName, downloadBlob, hasBlob } from "./download.ts";
import { cacheError } from "./errors.ts";
import { type CachedFile, isCommit, snapshotPath } from "./layout.ts";
import { carryOver, linkSnapshot, readRef, writeRef } from "./link.ts";
import { type PullProgress, reserveBytes } from "./pull.ts";
import type { HubFile } from "./select.ts";

export interface FilesPull {
  readonly client: HubClient;
  readonly cacheDir: string;
  readonly repo: string;
  /** Branch, tag or commit; default `main`. */
  readonly revision?: string;
  /** In the repository. */
  readonly paths: readonly string[];
  /** Free bytes where a folder lives; undefined where that cannot be told. */
  freeBytes(folder: string): Promise<number | undefined>;
  readonly signal: AbortSignal;
  onProgress(progress: PullProgress): void;
}

export interface PulledFiles {
  readonly commit: string;
  /** In the order of the paths. */
  readonly files: readonly (CachedFile & {
    /** In the cache's snapshot. */
    readonly place: string;
  })[];
  /** Bytes that came over the network. */
  readonly downloadedBytes: number;
}

/** Throws `hub_*`, `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`; then no partial is left. */
export async function pullFiles(options: FilesPull): Promise<PulledFiles> {
  const { client, cacheDir, repo, revision = "main", signal, onProgress } = options;
  const nothing = { file: "", digest: "", completed: 0, total: 0, totalCompleted: 0, totalBytes: 0 };
  onProgress({ ...nothing, phase: "resolving" });
  const commit = await client.resolveRevision(repo, revision, signal);
  const tree = await client.listTree(repo, commit, signal);
  const files = options.paths.map((path) => requireFile(tree, repo, path));
  // Names come from outside: each is checked before anything is written.
  const places = files.map((file) => snapshotPath(cacheDir, repo, commit, file.path));

  const downloadedBytes = await fetchMissing(options, commit, files);
  const cached = files.map((file): CachedFile => ({ path: file.path, blob: blobName(file), size: file.size }));
  await linkSnapshot({ cacheDir, repo, commit, files: cached });
  if (!isCommit(revision)) {
    const before = await readRef(cacheDir, repo, revision);
    if (before !== undefined && before !== commit)
      await carryOver({ cacheDir, repo, from: before, to: commit, tree, signal });
    if (before !== commit) await writeRef(cacheDir, repo, revision, commit);
  }
  return { commit, files: cached.map((file, index) => ({ ...file, place: places[index] ?? "" })), downloadedBytes };
}

function requireFile(tree: readonly HubFile[], repo: string, path: string): HubFile {
  const file = tree.find((entry) => entry.path.normalize("NFC") === path.normalize("NFC"));
  if (file) return file;
  throw new GatewayError("hub_not_found", `${repo} has no file ${path}.`);
}

async function fetchMissing(options: FilesPull, commit: string, files: readonly HubFile[]): Promise<number> {
  const { client, cacheDir, repo, signal, onProgress } = options;
  const missing: HubFile[] = [];
  for (const file of files) if (!(await hasBlob(cacheDir, repo, file))) missing.push(file);
  const needed = bytesOf(missing);
  if (missing.length > 0) await checkRoom(options, needed);
  const totalBytes = bytesOf(files);
  let done = totalBytes - needed;
  for (const file of missing) {
    const digest = `${file.sha256 === undefined ? "sha1" : "sha256"}:${blobName(file)}`;
    const step = { file: file.path, digest, total: file.size, totalBytes };
    const before = done;
    await downloadBlob({
      client,
      cacheDir,
      repo,
      commit,
      file,
      signal,
      onBytes: (completed) =>
        onProgress({ ...step, completed, totalCompleted: before + completed, phase: "downloading" }),
      onVerify: () =>
        onProgress({ ...step, completed: file.size, totalCompleted: before + file.size, phase: "verifying" }),
    });
    done += file.size;
  }
  return needed;
}

async function checkRoom({ cacheDir, freeBytes }: FilesPull, needed: number): Promise<void> {
  await mkdir(cacheDir, { recursive: true }).catch((error: unknown) => {
    throw cacheError(error, "its own folder");
  });
  const free = await freeBytes(cacheDir);
  if (free === undefined || free >= needed + reserveBytes) return;
  const lacking = Math.ceil((needed + reserveBytes - free) / (1024 * 1024));
  throw new GatewayError(
    "disk_full",
    `The download needs ${needed} bytes; the model cache's disk lacks ${lacking} MiB.`,
  );
}

function bytesOf(files: readonly HubFile[]): number {
  return files.reduce((sum, file) => sum + file.size, 0);
}
