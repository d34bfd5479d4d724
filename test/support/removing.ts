// A repository in a model cache, and what removing makes of it.
import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import type { TestContext } from "node:test";
import { type RemovedFiles, removeFiles } from "../../src/cache/removal/remove.ts";
import { type LinkedFiles, linkedFiles, storedLinks } from "../../src/cache/report/stored.ts";
import { surveyRepo } from "../../src/cache/scan/survey.ts";
import { entriesBelow } from "../../src/state/folder.ts";
import { type CacheRepo, cacheRepo, commitOf, modelHead, sha256 } from "./cache-folder.ts";
import { scratchFolder } from "./scratch.ts";

export const repoName = "acme/demo-GGUF";
export const main = commitOf("main");
export const old = commitOf("old");
export const eight = modelHead("eight");
export const four = modelHead("four");

export interface RemovalCache {
  readonly cacheDir: string;
  readonly repo: CacheRepo;
  remove(links: readonly string[], blobs?: readonly string[], commits?: readonly string[]): Promise<RemovedFiles>;
  /** What this gateway stored of the model, in these revisions. */
  removeStored(files: Readonly<Record<string, Uint8Array>>, commits: readonly string[]): Promise<RemovedFiles>;
  /** Every file and link, and every empty folder with `/` after it. */
  world(): Promise<string[]>;
}

export async function removalCache(t: TestContext): Promise<RemovalCache> {
  const cacheDir = await scratchFolder(t);
  const repo = cacheRepo(cacheDir, repoName);
  await repo.main(main);
  const removeLinked = (found: LinkedFiles): Promise<RemovedFiles> =>
    removeFiles({ cacheDir, repo: repoName, ...found });
  return {
    cacheDir,
    repo,
    remove: async (links, blobs = [], commits = []) => {
      const places = links.map((link) => relative(join(repo.root, "snapshots"), link).split("/"));
      const paths = places.map(([, ...path]) => path.join("/"));
      const touched = [...commits, ...places.flatMap(([commit]) => commit ?? [])];
      const found = linkedFiles(await surveyRepo(cacheDir, repoName), paths);
      return removeLinked({ ...found, blobs: [...blobs, ...found.blobs], commits: [...touched, ...found.commits] });
    },
    removeStored: async (files, commits) => {
      const stored = Object.entries(files).map(([path, bytes]) => ({ path, blob: sha256(bytes), size: bytes.length }));
      return removeLinked(storedLinks(await surveyRepo(cacheDir, repoName), stored, new Set(commits)));
    },
    world: async () => {
      const entries = await entriesBelow(cacheDir);
      const lines = entries.map(async (entry) => {
        const path = join(entry.parentPath, entry.name);
        if (!entry.isDirectory()) return relative(repo.root, path);
        return (await readdir(path)).length === 0 ? `${relative(repo.root, path)}/` : null;
      });
      return (await Promise.all(lines)).filter((line) => line !== null).sort();
    },
  };
}
