// Reads everything that lies in the model cache: revisions, blobs, unfinished files, and whether other programs are at it.
// For the disk report and for collecting; the loop's own look is cache.ts. Writes nothing.
import type { Dirent, Stats } from "node:fs";
import { lstat, readdir, readFile, readlink, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { ignoreDangling, systemCode } from "../../core/errors.ts";
import { entriesBelow } from "../../state/folder.ts";
import { isHeld } from "../download/in-use.ts";
import { partialEntries } from "../download/partials.ts";
import { isDigest, partialPath, partialSuffix, repoFolder, repoOfFolder } from "../layout/layout.ts";
import { onDisk } from "../removal/remove.ts";
import {
  type CacheSurvey,
  linkedBlobs,
  type RepoBlob,
  type RepoFiles,
  type RepoLink,
  type RepoPartial,
} from "../report/repo-files.ts";

/**
 * `gateway`: the id of this one, by which unfinished files are known to be its own. Errors: what the system says where the
 * cache's own folder cannot be read. One that is absent is empty.
 */
export async function surveyCache(cacheDir: string, gateway = ""): Promise<CacheSurvey> {
  const repos: RepoFiles[] = [];
  const unreadable: { repo: string; why: string }[] = [];
  for (const folder of (await namesIn(cacheDir)).sort()) {
    const repo = repoOfFolder(folder);
    if (repo === null) continue;
    try {
      const found = await surveyRepo(cacheDir, repo, gateway);
      if (found) repos.push(found);
    } catch (error) {
      const code = systemCode(error);
      if (code === undefined) throw error;
      unreadable.push({ repo, why: `its folder cannot be read (${code})` });
    }
  }
  return { repos, unreadable };
}

/** One repository; null where it has no folder. Errors: what the system says. */
export async function surveyRepo(cacheDir: string, repo: string, gateway = ""): Promise<RepoFiles | null> {
  const root = repoFolder(cacheDir, repo);
  const entries = await ifPresent(entriesBelow(root));
  if (entries === null) return null;
  const files = entries.filter((entry) => !entry.isDirectory());
  const inFolder = (folder: string): Dirent[] => files.filter((entry) => placeOf(root, entry).startsWith(`${folder}/`));
  const blobs = await blobsOf(root, inFolder("blobs"));
  const byInode = new Map(blobs.map((blob) => [blob.inode, blob.name]));
  const snapshots = new Map<string, RepoLink[]>();
  for (const entry of inFolder("snapshots")) {
    const [, commit = "", ...path] = placeOf(root, entry).split("/");
    // A file among the commits, as file browsers leave them.
    if (path.length === 0) continue;
    const link = await linkOf(root, entry, path.join("/"), byInode);
    if (link) snapshots.set(commit, [...(snapshots.get(commit) ?? []), link]);
  }
  const listed = [...snapshots].map(([commit, links]) => ({ commit, files: links }));
  const linked = linkedBlobs({ snapshots: listed });
  return {
    repo,
    refs: await refsOf(root, inFolder("refs")),
    snapshots: listed,
    blobs,
    hasFolderLink: await hasFolderLink(root, files),
    partials: await partialsOf(
      cacheDir,
      repo,
      gateway,
      files.map((entry) => placeOf(root, entry)),
      blobs,
      linked,
    ),
    othersAt: await othersAt(cacheDir, root, files),
  };
}

function placeOf(root: string, entry: Dirent): string {
  return relative(root, join(entry.parentPath, entry.name)).split(sep).join("/");
}

async function blobsOf(root: string, entries: readonly Dirent[]): Promise<RepoBlob[]> {
  const blobs: RepoBlob[] = [];
  for (const entry of entries) {
    if (!isDigest(entry.name) || placeOf(root, entry) !== `blobs/${entry.name}`) continue;
    const found = await ifPresent(lstat(join(root, "blobs", entry.name)));
    if (found?.isFile()) blobs.push({ name: entry.name, size: found.size, inode: inodeOf(found), names: found.nlink });
  }
  return blobs;
}

/** Null where it went meanwhile. */
async function linkOf(
  root: string,
  entry: Dirent,
  path: string,
  byInode: ReadonlyMap<string, string>,
): Promise<RepoLink | null> {
  const place = join(entry.parentPath, entry.name);
  const target = await ifPresent(stat(place));
  const inode = target?.isFile() ? inodeOf(target) : null;
  const size = target?.isFile() ? target.size : null;
  if (!entry.isSymbolicLink()) return target ? { path, blob: byInode.get(inode ?? "") ?? null, size, inode } : null;
  const to = await ifPresent(readlink(place));
  if (to === null) return null;
  const leadsTo = resolve(dirname(place), to);
  const name = basename(leadsTo);
  return { path, blob: dirname(leadsTo) === join(root, "blobs") && isDigest(name) ? name : null, size, inode };
}

/** All revisions, one, or a folder in one may be links. */
async function hasFolderLink(root: string, entries: readonly Dirent[]): Promise<boolean> {
  for (const entry of entries) {
    const place = placeOf(root, entry);
    const isLink = entry.isSymbolicLink() && /^snapshots(?:\/|$)/.test(place);
    if (isLink && (await ifPresent(stat(join(root, place))))?.isDirectory()) return true;
  }
  return false;
}

async function refsOf(root: string, entries: readonly Dirent[]): Promise<{ name: string; commit: string }[]> {
  const refs: { name: string; commit: string }[] = [];
  for (const entry of entries) {
    const place = placeOf(root, entry);
    const text = await ifPresent(readFile(join(root, place), "utf8"));
    if (text !== null) refs.push({ name: place.slice("refs/".length), commit: text.trim() });
  }
  return refs;
}

async function partialsOf(
  cacheDir: string,
  repo: string,
  gateway: string,
  places: readonly string[],
  blobs: readonly RepoBlob[],
  linked: ReadonlySet<string>,
): Promise<RepoPartial[]> {
  const root = repoFolder(cacheDir, repo);
  const partials: RepoPartial[] = [];
  for (const { digest, paths, data, sidecar, ...entry } of await partialEntries(cacheDir, repo, gateway)) {
    const isShown = linked.has(digest);
    const blob = blobs.find(({ name }) => name === digest);
    // A sidecar alone is of a file that is whole; where its partial is there the blob is another's.
    const isWhole = data === null && sidecar !== null && blob !== undefined && !isShown;
    const found = (await Promise.all(paths.map((path) => ifPresent(lstat(path))))).filter(isThere);
    partials.push({
      paths: [...(isWhole ? [`blobs/${digest}`] : []), ...paths.map((path) => relative(root, path))].sort(),
      bytes: found.reduce((sum, each) => sum + onDisk(each), isWhole ? blob.size : 0),
      total: sidecar?.size ?? null,
      model: sidecar?.model ?? null,
      modifiedAt: entry.modifiedAt,
      isHeld: isHeld(partialPath(cacheDir, repo, digest)),
      isAnothers: entry.isLocked || (entry.gateway !== null && entry.gateway !== gateway),
      isShown,
    });
  }
  return [...partials, ...(await temporariesOf(root, places))];
}

/** Links and refs on their way. */
async function temporariesOf(root: string, places: readonly string[]): Promise<RepoPartial[]> {
  const temporaries: RepoPartial[] = [];
  for (const place of places.filter((name) => name.endsWith(partialSuffix) && !name.includes("/"))) {
    const found = await ifPresent(lstat(join(root, place)));
    if (!found) continue;
    const unknown = { total: null, model: null, isAnothers: false, isShown: false };
    const { mtimeMs: modifiedAt } = found;
    temporaries.push({
      paths: [place],
      bytes: onDisk(found),
      modifiedAt,
      isHeld: isHeld(join(root, place)),
      ...unknown,
    });
  }
  return temporaries;
}

/** What the hub's own tools and llama.cpp write while they download; their locks may stay for ever, so only the time tells. */
const othersWork = /\.(?:incomplete|lock|downloadInProgress|tmp|part)$/;

async function othersAt(cacheDir: string, root: string, files: readonly Dirent[]): Promise<number | null> {
  const own = files
    .filter(({ name }) => othersWork.test(name) && !name.includes(partialSuffix))
    .map((entry) => join(entry.parentPath, entry.name));
  const locks = join(cacheDir, ".locks", basename(root));
  const places = [...own, ...(await namesIn(locks)).map((name) => join(locks, name))];
  const times = await Promise.all(places.map(async (place) => (await ifPresent(lstat(place)))?.mtimeMs ?? 0));
  return times.length === 0 ? null : Math.max(...times);
}

/** A folder's names; none where there is no such folder. */
async function namesIn(folder: string): Promise<string[]> {
  return (await ifPresent(readdir(folder))) ?? [];
}

function inodeOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}

function isThere<T>(value: T | null): value is T {
  return value !== null;
}

/** Null for what is not there, or went between two looks. */
function ifPresent<T>(look: Promise<T>): Promise<T | null> {
  return look.catch(ignoreDangling);
}
