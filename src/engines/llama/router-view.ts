// The router's view of the model cache: a folder of links in the state folder.
import { mkdir, readdir, readlink, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { stateError } from "../../state/atomic-file.ts";

/** In the state folder. */
export const viewName = "router-cache";

/** Links to the folders that can be read whole: llama-server exits at the first entry of its cache that it cannot read. */
export async function showRepos(view: string, cacheDir: string, repos: readonly string[]): Promise<void> {
  try {
    // Not the folders above it: a state folder that was moved away came back empty, made by a reload that was under way.
    await mkdir(view).catch((error: unknown) => {
      if (systemCode(error) !== "EEXIST") throw error;
    });
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
