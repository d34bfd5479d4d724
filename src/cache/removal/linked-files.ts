// Where a model's links lie and which blobs they lead to, in every revision. Without the links nobody could tell any more.
// Changes nothing.
import { readdir, readlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { isAbsent, systemCode } from "../../core/errors.ts";
import { isCommit } from "../../core/ids.ts";
import { cacheError } from "../../hub/errors.ts";
import { isDigest, repoFolder } from "../layout/layout.ts";

export interface LinkedFiles {
  /** Names of blobs. */
  readonly blobs: readonly string[];
  /** Revisions that have any of the files. */
  readonly commits: readonly string[];
}

/** `paths`: as they are called in the repository. Errors: `cache_unwritable` where it cannot be read. */
export async function linkedFiles(cacheDir: string, repo: string, paths: readonly string[]): Promise<LinkedFiles> {
  const snapshots = join(repoFolder(cacheDir, repo), "snapshots");
  const blobs = new Set<string>();
  const commits = new Set<string>();
  try {
    for (const commit of await readdir(snapshots)) {
      for (const path of paths) {
        const target = await targetOf(join(snapshots, commit, path));
        if (target === null) continue;
        if (isCommit(commit)) commits.add(commit);
        if (isDigest(basename(target))) blobs.add(basename(target));
      }
    }
  } catch (error) {
    if (!isAbsent(error)) throw cacheError(error, repo);
  }
  return { blobs: [...blobs], commits: [...commits] };
}

/** Empty for a plain file (EINVAL), which has no blob; null for what is gone already, or in another revision only. */
async function targetOf(path: string): Promise<string | null> {
  try {
    return await readlink(path);
  } catch (error) {
    if (systemCode(error) === "EINVAL") return "";
    if (isAbsent(error)) return null;
    throw error;
  }
}
