// Deletes a model's files from the cache: links first, then the blobs that nothing links any more.
// A person may have moved the repository's folder, its snapshots or its blobs to another disk and left a link: what is there is
// deleted, and the link stays, for the next pull. Any other link that leads out of the cache goes, and not what it leads to.
// A crash in between leaves unlinked blobs, which the next try finds by the names it is given.
import { lstat, readdir, readlink, realpath, rm, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { systemCode } from "../core/errors.ts";
import { cacheError } from "./errors.ts";
import { blobPath, isDigest, repoFolder } from "./layout.ts";

export interface RemovedModel {
  readonly deletedFiles: number;
  readonly freedBytes: number;
}

export async function removeModel(options: {
  readonly cacheDir: string;
  /** `owner/name` */
  readonly repo: string;
  /** Absolute paths in snapshots. */
  readonly links: readonly string[];
  /** Further blobs that belonged to the model. */
  readonly blobs: readonly string[];
  /** Blobs that stay even where nothing links them any more. */
  readonly spared?: readonly string[];
}): Promise<RemovedModel> {
  const root = repoFolder(options.cacheDir, options.repo);
  let deletedFiles = 0;
  let freedBytes = 0;
  const blobs = new Set(options.blobs);
  try {
    const blobsFolder = await realpath(join(root, "blobs")).catch(ignoreAbsent);
    for (const { commit, inside } of await inEverySnapshot(join(root, "snapshots"), options.links)) {
      const path = await ownPart(commit, inside);
      const target = path === null ? "absent" : await targetOf(path, blobsFolder);
      if (path === null || target === "absent") continue;
      if (target === "plain") freedBytes += (await lstat(path)).size;
      else if (target !== "foreign") blobs.add(target.blob);
      await unlink(path);
      deletedFiles++;
    }
    await removeEmptyFolders(join(root, "snapshots"));
    const linked = await linkedBlobs(join(root, "snapshots"));
    for (const blob of blobs) {
      if (linked.has(blob) || options.spared?.includes(blob)) continue;
      const path = blobPath(options.cacheDir, options.repo, blob);
      const entry = await lstat(path).catch(() => undefined);
      if (entry === undefined) continue;
      await rm(path);
      deletedFiles++;
      freedBytes += entry.isSymbolicLink() ? 0 : entry.size;
    }
    await removeEmptyRepo(root);
  } catch (error) {
    throw cacheError(error, options.repo);
  }
  return { deletedFiles, freedBytes };
}

interface InSnapshot {
  /** The commit's folder. */
  readonly commit: string;
  /** Path inside it. */
  readonly inside: string;
}

/**
 * The same files in the repository's other revisions: deleting one revision alone would bring an older one back. Folders
 * before links to folders, so that a link to another revision shows them no more when its turn comes.
 */
async function inEverySnapshot(snapshots: string, links: readonly string[]): Promise<InSnapshot[]> {
  const entries = (await readdir(snapshots, { withFileTypes: true }).catch(ignoreAbsent)) ?? [];
  const commits = entries.toSorted((a, b) => Number(a.isSymbolicLink()) - Number(b.isSymbolicLink()));
  const paths = links.map((path) => relative(snapshots, path).split(sep).slice(1).join(sep));
  return paths.flatMap((inside) => commits.map(({ name }) => ({ commit: join(snapshots, name), inside })));
}

/** What to delete so that the file is shown no more: itself, or a link on the way to it. Null where it is not there. */
async function ownPart(commit: string, inside: string): Promise<string | null> {
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

/** A link that somebody made to a file outside the cache is ours to remove, and the file is not. */
async function targetOf(
  path: string,
  blobsFolder: string | null,
): Promise<"absent" | "plain" | "foreign" | { readonly blob: string }> {
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

async function linkedBlobs(snapshots: string): Promise<Set<string>> {
  const linked = new Set<string>();
  const entries = await readdir(snapshots, { recursive: true, withFileTypes: true }).catch(ignoreAbsent);
  for (const entry of entries ?? []) {
    if (entry.isSymbolicLink()) linked.add(basename(await readlink(join(entry.parentPath, entry.name))));
  }
  return linked;
}

/** All of them, not just those emptied now: a crash may have left one. */
export async function removeEmptyFolders(folder: string): Promise<void> {
  for (const entry of (await readdir(folder, { withFileTypes: true }).catch(ignoreAbsent)) ?? []) {
    if (!entry.isDirectory()) continue;
    await removeEmptyFolders(join(folder, entry.name));
    await removeIfEmpty(join(folder, entry.name));
  }
}

/** True where nothing is left in it, also where it was gone before: a removal that was cut short is finished. */
export async function removeIfEmpty(folder: string): Promise<boolean> {
  try {
    // rmdir refuses a link to a folder; it stays, and so does the folder.
    if ((await lstat(folder)).isSymbolicLink()) return (await readdir(folder)).length === 0;
    await rmdir(folder);
    return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return true;
    if (["ENOTEMPTY", "EEXIST"].includes(systemCode(error) ?? "")) return false;
    throw error;
  }
}

/** A repository with no snapshot left keeps nothing: its refs would name a commit that is not there. */
export async function removeEmptyRepo(root: string): Promise<void> {
  if (!(await removeIfEmpty(join(root, "snapshots")))) return;
  await rm(join(root, "refs"), { recursive: true, force: true });
  await removeIfEmpty(join(root, "blobs"));
  await removeIfEmpty(root);
}

function ignoreAbsent(error: unknown): null {
  if (systemCode(error) === "ENOENT") return null;
  throw error;
}

/** A file among the commits, as file browsers leave them, is no folder to look into. */
function ignoreNotThere(error: unknown): null {
  if (["ENOENT", "ENOTDIR", "ELOOP"].includes(systemCode(error) ?? "")) return null;
  throw error;
}
