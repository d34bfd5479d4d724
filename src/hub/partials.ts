// Removes what a crash of this gateway left half-written in the cache.
// Only our own: other tools share the cache, and their partials and locks may belong to a download that is under way.
import { readdir, rm } from "node:fs/promises";
import { systemCode } from "../core/errors.ts";
import { isActive } from "./download.ts";
import { cacheError } from "./errors.ts";
import { partialSuffix, repoOfFolder } from "./layout.ts";

/** Removes leftover partials that this process is not writing; answers with their paths inside `cacheDir`, sorted. */
export async function cleanPartials(cacheDir: string): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const repo of await names(cacheDir)) {
    if (repoOfFolder(repo) === null) continue;
    for (const folder of [repo, `${repo}/blobs`]) {
      for (const name of await names(`${cacheDir}/${folder}`)) {
        const path = `${folder}/${name}`;
        if (!name.endsWith(partialSuffix) || isActive(`${cacheDir}/${path}`)) continue;
        await rm(`${cacheDir}/${path}`, { force: true }).catch((error: unknown) => {
          throw cacheError(error, path);
        });
        removed.push(path);
      }
    }
  }
  return removed.sort();
}

/** A folder's names; none where there is no such folder. */
async function names(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw cacheError(error, "a look at it");
  }
}
