// The router's view of the model cache: a folder of links to the repositories that could be read whole. llama-server stats
// every entry of its cache and exits at the first that it cannot read: one looping link beside a model, or the lost+found of
// another user, kept all models away. The cache itself is not changed.
import { readdir, readlink, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { stateError } from "../../state/atomic-file.ts";
import { makeFolder } from "../../state/folder.ts";

/** `repos`: names of folders in the cache; links to others are removed. Errors: `disk_full`, `state_unwritable`. */
export async function showRepos(view: string, cacheDir: string, repos: readonly string[]): Promise<void> {
  try {
    await makeFolder(view);
    const shown = new Set(repos);
    for (const name of await readdir(view)) {
      const link = join(view, name);
      const isRight = shown.has(name) && (await readlink(link).catch(() => null)) === join(cacheDir, name);
      if (isRight) shown.delete(name);
      else await rm(link);
    }
    // A junction needs no rights on Windows; elsewhere the type means nothing.
    for (const name of shown) await symlink(join(cacheDir, name), join(view, name), "junction");
  } catch (error) {
    throw stateError(view, error);
  }
}
