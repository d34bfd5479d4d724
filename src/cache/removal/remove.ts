// Deletes a model's files from the cache: links first, then the blobs that nothing links any more.
// A person may have moved the repository's folder, its snapshots or its blobs to another disk and left a link: what is there is
// deleted, and the link stays, for the next pull. Any other link that leads out of the cache goes, and not what it leads to.
// A crash in between leaves unlinked blobs and empty folders, which the next try finds by the names it is given.
import { lstat, readdir, readlink, realpath, rm, stat, unlink } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { isCommit } from "../../core/ids.ts";
import { cacheError } from "../../hub/errors.ts";
import {
  blobsShownIn,
  type InSnapshot,
  ignoreNotThere,
  removeEmptiedAbove,
  removeEmptiedRepo,
} from "../download/emptied.ts";
import { isHeld } from "../download/in-use.ts";
import {
  blobPath,
  type CachedFile,
  isDigest,
  partialPath,
  repoFolder,
  snapshotFolder,
  snapshotPath,
} from "../layout/layout.ts";

export interface RemovedModel {
  readonly deletedFiles: number;
  readonly freedBytes: number;
}

/** Deletes a model wherever the repository shows it, whoever put it there: for who asked for it. */
export async function removeModel(options: {
  readonly cacheDir: string;
  /** `owner/name` */
  readonly repo: string;
  /** Absolute paths in snapshots; the same paths go in every revision. */
  readonly links: readonly string[];
  /** Further blobs that belonged to the model. */
  readonly blobs: readonly string[];
  /** Revisions that an earlier try may have emptied. */
  readonly commits?: readonly string[];
}): Promise<RemovedModel> {
  const { cacheDir, repo, links, blobs, commits = [] } = options;
  const snapshots = join(repoFolder(cacheDir, repo), "snapshots");
  const own = [...commits, ...links.map((path) => relative(snapshots, path).split(sep)[0] ?? "")].filter(isCommit);
  return sweep({ cacheDir, repo, blobs, commits: own }, async (take, emptied) => {
    for (const place of await inEverySnapshot(snapshots, links)) {
      const path = await ownPart(place);
      if (path !== null) await take(path, place);
      else await emptied(place);
    }
  });
}

/** A file that this gateway stored, and the revision that it linked it into. */
export interface StoredLink extends CachedFile {
  readonly commit: string;
}

/** Deletes what this gateway stored and nothing else: links that lead to these blobs, and blobs that nothing else shows. */
export async function removeStored(options: {
  readonly cacheDir: string;
  /** `owner/name` */
  readonly repo: string;
  readonly links: readonly StoredLink[];
}): Promise<RemovedModel> {
  const { cacheDir, repo, links } = options;
  const stored = new Set(links.flatMap(({ blob, found }) => (found ? [] : [blob])));
  // Found here when it was pulled: the link to it is ours, and it is not.
  const spared = links.flatMap(({ blob }) => (stored.has(blob) ? [] : [blob]));
  const commits = links.map(({ commit }) => commit);
  return sweep({ cacheDir, repo, blobs: [...stored], commits, spared }, async (take, emptied) => {
    for (const { commit, path, blob, size } of links) {
      const place = { commit: snapshotFolder(cacheDir, repo, commit), inside: path.split("/").join(sep) };
      const link = snapshotPath(cacheDir, repo, commit, path);
      // By a folder that is a link: somebody else shows it there.
      if (resolve((await ownPart(place)) ?? link) !== resolve(link)) continue;
      const isStored = async (target: Target): Promise<boolean> => {
        if (typeof target === "object") return target.blob === blob;
        return target === "plain" && (await stat(link).catch(ignoreNotThere))?.size === size;
      };
      await take(link, place, isStored);
      await emptied(place);
    }
  });
}

type Take = (path: string, place: InSnapshot, isMeant?: (target: Target) => Promise<boolean>) => Promise<void>;

/** The links that `unlinkAll` takes, then the blobs, then what is empty. */
async function sweep(
  what: {
    readonly cacheDir: string;
    readonly repo: string;
    readonly blobs: readonly string[];
    readonly commits: readonly string[];
    /** Blobs that stay though nothing shows them any more. */
    readonly spared?: readonly string[];
  },
  unlinkAll: (take: Take, emptied: (place: InSnapshot) => Promise<void>) => Promise<void>,
): Promise<RemovedModel> {
  const { cacheDir, repo } = what;
  const root = repoFolder(cacheDir, repo);
  const blobs = new Set(what.blobs);
  const commits = new Set(what.commits);
  let deletedFiles = 0;
  let freedBytes = 0;
  const count = async (path: string): Promise<void> => {
    const { size, nlink } = await lstat(path);
    deletedFiles++;
    if (nlink === 1) freedBytes += size;
  };
  try {
    const blobsFolder = await realpath(join(root, "blobs")).catch(ignoreAbsent);
    const take: Take = async (path, place, isMeant = async () => true) => {
      const target = await targetOf(path, blobsFolder);
      if (target === "absent" || !(await isMeant(target))) return;
      if (target === "plain") await count(path);
      else deletedFiles++;
      if (typeof target === "object") blobs.add(target.blob);
      await unlink(path);
      // At once: what a kill leaves here looks like a folder that another program has just made.
      commits.add(basename(place.commit));
      await removeEmptiedAbove(place);
    };
    await unlinkAll(take, async (place) => {
      if (commits.has(basename(place.commit))) await removeEmptiedAbove(place);
    });
    const shown = await blobsShownIn(join(root, "snapshots"));
    for (const blob of blobs) {
      const path = blobPath(cacheDir, repo, blob);
      // A pull under way has found it here, and links it when its other files have come.
      if (shown.has(blob) || what.spared?.includes(blob) || isHeld(partialPath(cacheDir, repo, blob))) continue;
      const entry = await lstat(path).catch(() => undefined);
      if (entry === undefined) continue;
      if (entry.isSymbolicLink()) deletedFiles++;
      else await count(path);
      await rm(path);
    }
    await removeEmptiedRepo(root, commits);
  } catch (error) {
    throw cacheError(error, repo);
  }
  return { deletedFiles, freedBytes };
}

/**
 * The same files in the repository's other revisions: deleting one revision alone would bring an older one back. Folders
 * before links to folders, so that a link to another revision shows them no more when its turn comes.
 */
async function inEverySnapshot(snapshots: string, links: readonly string[]): Promise<InSnapshot[]> {
  const entries = (await readdir(snapshots, { withFileTypes: true }).catch(ignoreAbsent)) ?? [];
  const commits = entries.toSorted((a, b) => Number(a.isSymbolicLink()) - Number(b.isSymbolicLink()));
  return links
    .map((path) => insideOf(snapshots, path))
    .flatMap((inside) => commits.map(({ name }) => ({ commit: join(snapshots, name), inside })));
}

function insideOf(snapshots: string, path: string): string {
  return relative(snapshots, path).split(sep).slice(1).join(sep);
}

/** What to delete so that the file is shown no more: itself, or a link on the way to it. Null where it is not there. */
async function ownPart({ commit, inside }: InSnapshot): Promise<string | null> {
  const path = join(commit, inside);
  const isThere = await lstat(path).catch(ignoreNotThere);
  if (!isThere) return null;
  let folder = commit;
  for (const part of inside.split(sep)) {
    if ((await lstat(folder)).isSymbolicLink()) return folder;
    folder = join(folder, part);
  }
  return path;
}

type Target = "absent" | "plain" | "foreign" | { readonly blob: string };

/** A link that somebody made to a file outside the cache is ours to remove, and the file is not. */
async function targetOf(path: string, blobsFolder: string | null): Promise<Target> {
  try {
    // By real paths, as the system follows it: the folder that it lies in may itself be reached by a link.
    const target = resolve(await realpath(dirname(path)), await readlink(path));
    const folder = await realpath(dirname(target)).catch(ignoreNotThere);
    const blob = basename(target);
    return folder !== null && folder === blobsFolder && isDigest(blob) ? { blob } : "foreign";
  } catch (error) {
    if (systemCode(error) === "EINVAL") return "plain";
    return ignoreNotThere(error) ?? "absent";
  }
}

function ignoreAbsent(error: unknown): null {
  if (systemCode(error) === "ENOENT") return null;
  throw error;
}
