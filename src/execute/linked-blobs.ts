// Which blobs a model's links lead to, in every revision. Without the links nobody could tell any more. Changes nothing.
import { readdir, readlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { systemCode } from "../core/errors.ts";
import { cacheError } from "../hub/errors.ts";
import { isDigest, repoFolder } from "../hub/layout.ts";

/** `paths`: as they are called in the repository. Names of blobs. Errors: `cache_unwritable` where it cannot be read. */
export async function linkedBlobs(cacheDir: string, repo: string, paths: readonly string[]): Promise<string[]> {
  const snapshots = join(repoFolder(cacheDir, repo), "snapshots");
  try {
    const commits = await readdir(snapshots);
    const targets = await Promise.all(
      commits.flatMap((commit) => paths.map((path) => readlink(join(snapshots, commit, path)).catch(ignoreAbsent))),
    );
    const names = targets.filter((target) => target !== null).map((target) => basename(target));
    return [...new Set(names.filter(isDigest))];
  } catch (error) {
    if (ignoreAbsent(error) === null) return [];
    throw cacheError(error, repo);
  }
}

/** Gone already, in one revision only, or a plain file (EINVAL), which has no blob. */
function ignoreAbsent(error: unknown): null {
  if (["ENOENT", "ENOTDIR", "EINVAL"].includes(systemCode(error) ?? "")) return null;
  throw error;
}
