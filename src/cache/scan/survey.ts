// Reads everything in the model cache: revisions, blobs, unfinished files, and whether other programs are writing. For the
// disk report and for garbage collection; the loop's own scan is scan.ts. Writes nothing.
import { lstat } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { ignoreDangling, systemCode } from "../../core/errors.ts";
import { orCacheError } from "../../hub/errors.ts";
import { namesIn } from "../../state/folder.ts";
import { isHeld } from "../download/in-use.ts";
import { partialEntries } from "../download/partials.ts";
import { partialSuffix, repoFolder, repoOfFolder } from "../layout/layout.ts";
import { type CacheSurvey, linkedBlobs, type RepoFiles } from "../report/repo-files.ts";
import { type RepoFolder, readRepoFolder } from "./repo-folder.ts";

/**
 * `gateway`: the id of this one, by which unfinished files are known to be its own. Errors: the system's, if the cache's own
 * folder cannot be read. One that is absent is empty.
 */
export async function surveyCache(cacheDir: string, gateway = ""): Promise<CacheSurvey> {
  const repos: RepoFiles[] = [];
  const unreadable: { repo: string; why: string }[] = [];
  for (const folder of (await namesIn(cacheDir)).sort()) {
    const repo = repoOfFolder(folder);
    if (repo === null) continue;
    try {
      const found = await readRepo(cacheDir, repo, gateway);
      if (found) repos.push(found);
    } catch (error) {
      const code = systemCode(error);
      if (code === undefined) throw error;
      unreadable.push({ repo, why: `its folder cannot be read (${code})` });
    }
  }
  return { repos, unreadable };
}

/** One repository; null if it has no folder. Errors: `cache_unwritable`. */
export function surveyRepo(cacheDir: string, repo: string, gateway = ""): Promise<RepoFiles | null> {
  return orCacheError(repo, () => readRepo(cacheDir, repo, gateway));
}

async function readRepo(cacheDir: string, repo: string, gateway: string): Promise<RepoFiles | null> {
  const root = repoFolder(cacheDir, repo);
  const folder = await readRepoFolder(root);
  if (folder === null) return null;
  if (folder.failure !== null) throw Object.assign(new Error(folder.failure), { code: folder.failure });
  const partials = await partialsOf(cacheDir, repo, gateway, folder);
  return { ...folder, repo, partials, othersAt: await othersAt(cacheDir, root, folder) };
}

async function partialsOf(cacheDir: string, repo: string, gateway: string, { snapshots }: RepoFolder) {
  const root = repoFolder(cacheDir, repo);
  const linked = linkedBlobs({ snapshots });
  const entries = await partialEntries(cacheDir, repo, gateway);
  return entries.map(({ digest, partial, paths, bytes, sidecar, modifiedAt, ...entry }) => ({
    paths: paths.map((path) => relative(root, path)),
    bytes,
    model: sidecar?.model ?? null,
    modifiedAt,
    isHeld: isHeld(partial),
    isAnothers: entry.isLocked || (entry.gateway !== null && entry.gateway !== gateway),
    isShown: linked.has(digest),
  }));
}

/** The hub's own tools and llama.cpp write these while they download; their locks may stay for ever, so only the time counts. */
const othersWork = /\.(?:incomplete|lock|downloadInProgress|tmp|part)$/;

async function othersAt(cacheDir: string, root: string, { places }: RepoFolder): Promise<number | null> {
  const own = places.filter((place) => othersWork.test(place) && !place.includes(partialSuffix));
  const locks = join(cacheDir, ".locks", basename(root));
  const all = [...own.map((place) => join(root, place)), ...(await namesIn(locks)).map((name) => join(locks, name))];
  return all.length === 0 ? null : Math.max(...(await Promise.all(all.map(timeOf))));
}

/** 0 for what went meanwhile. */
async function timeOf(path: string): Promise<number> {
  return (await lstat(path).catch(ignoreDangling))?.mtimeMs ?? 0;
}
