// Names and paths of the hub's cache layout. Pure, and not to be bypassed: every name that comes from the hub (paths, digests,
// commits) is checked here before it becomes a path.
import { GatewayError } from "../../core/errors.ts";
import { isCommit, isRepo } from "../../core/ids.ts";

/** The ending of files that this gateway is still writing. Other tools list `.incomplete` as unfinished and leave it be. */
export const partialSuffix = ".gw.incomplete";

/** sha256 of a large file, or git's sha1 of a small one: both are what the hub's own tools name blobs by. */
const digestPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const repoFolderPattern = /^models--(.+?)--(.+)$/;

/** A file of a model in the cache: its path in the repository, and the name of its blob. */
export interface CachedFile {
  readonly path: string;
  /** Name in `blobs/`: lower-case sha256, or git's sha1 for a file that is not in LFS. */
  readonly blob: string;
  /** Bytes. */
  readonly size: number;
  /** Its blob was there before, stored by another program: it was checked, and is not this gateway's to delete. */
  readonly found?: true;
}

/** Whether a path from outside stays inside the folder that it is joined to, on every platform, and fits into it. */
export function isSafePath(path: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what is being refused
  if (path === "" || /[\\\u0000-\u001f:]/.test(path)) return false;
  const encoder = new TextEncoder();
  return path.split("/").every((part) => !["", ".", ".."].includes(part) && encoder.encode(part).length <= 255);
}

function checkPath(path: string): string {
  return checked(isSafePath(path), path, "a file that would leave its folder, or whose name exceeds 255 bytes");
}

export function isDigest(text: string): boolean {
  return digestPattern.test(text);
}

function checkDigest(digest: string): string {
  return checked(isDigest(digest), digest, "a digest that is none");
}

function checkCommit(commit: string): string {
  return checked(isCommit(commit), commit, "a commit that is none");
}

function checked(isGood: boolean, text: string, what: string): string {
  if (isGood) return text;
  throw new GatewayError("not_supported", `The hub names ${what}: ${JSON.stringify(text.slice(0, 300))}.`);
}

/** `cache/models--owner--name` */
export function repoFolder(cacheDir: string, repo: string): string {
  if (!isRepo(repo))
    throw new GatewayError("invalid_request", `${JSON.stringify(repo)} is not a repository (owner/name)`);
  return `${cacheDir}/models--${repo.replace("/", "--")}`;
}

/** `owner/name` of a folder in the cache, or null where the folder holds no model repository. */
export function repoOfFolder(folder: string): string | null {
  const match = repoFolderPattern.exec(folder);
  const repo = match ? `${match[1]}/${match[2]}` : "";
  return isRepo(repo) ? repo : null;
}

export function blobsFolder(cacheDir: string, repo: string): string {
  return `${repoFolder(cacheDir, repo)}/blobs`;
}

export function blobPath(cacheDir: string, repo: string, digest: string): string {
  return `${blobsFolder(cacheDir, repo)}/${checkDigest(digest)}`;
}

/** A blob on its way. */
export function partialPath(cacheDir: string, repo: string, digest: string): string {
  return `${blobPath(cacheDir, repo, digest)}${partialSuffix}`;
}

/** The sidecar or the lock of a partial. The name ends as partials do, so that other tools leave the file alone. */
export function besidePartial(partial: string, kind: "sidecar" | "lock"): string {
  return `${partial.slice(0, -partialSuffix.length)}.${kind}${partialSuffix}`;
}

const partialPattern = /^([0-9a-f]{40}|[0-9a-f]{64})\.(?:.+\.)?gw\.incomplete(?:\.[^/]+)?$/;

/** The digest in a name in `blobs/` of a partial, its sidecar or lock, or a temporary of these; null for any other. */
export function digestOfPartial(name: string): string | null {
  return partialPattern.exec(name)?.[1] ?? null;
}

/** A place for a link or ref before it is renamed to its final name; not in `refs/` or `snapshots/`, which others list. */
export function temporaryPath(cacheDir: string, repo: string, unique: string): string {
  return `${repoFolder(cacheDir, repo)}/.${unique}${partialSuffix}`;
}

export function snapshotsFolder(cacheDir: string, repo: string): string {
  return `${repoFolder(cacheDir, repo)}/snapshots`;
}

export function snapshotFolder(cacheDir: string, repo: string, commit: string): string {
  return `${snapshotsFolder(cacheDir, repo)}/${checkCommit(commit)}`;
}

export function snapshotPath(cacheDir: string, repo: string, commit: string, path: string): string {
  return `${snapshotFolder(cacheDir, repo, commit)}/${checkPath(path)}`;
}

export function refPath(cacheDir: string, repo: string, revision: string): string {
  return `${repoFolder(cacheDir, repo)}/refs/${checkPath(revision)}`;
}

/** What the snapshot's link for `path` points to, relative to the link: `../../blobs/<digest>`, deeper in subfolders. */
export function linkTarget(path: string, digest: string): string {
  const depth = checkPath(path).split("/").length + 1;
  return `${"../".repeat(depth)}blobs/${checkDigest(digest)}`;
}
