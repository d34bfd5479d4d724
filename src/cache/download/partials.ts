// Unfinished files in the cache, by blob: the partial, its sidecar and lock, and whose they are. Writes nothing. Links under such
// a name are none of ours: they are not followed.
import type { Stats } from "node:fs";
import { orCacheError } from "../../hub/errors.ts";
import { namesIn } from "../../state/folder.ts";
import { blobsFolder, digestOfPartial, partialPath } from "../layout/layout.ts";
import { partialHolder } from "./in-use.ts";
import { fileAt, readSidecar, type Sidecar } from "./partial-file.ts";

export interface PartialEntry {
  readonly digest: string;
  /** Absolute; it need not be there. */
  readonly partial: string;
  /** Absolute: those there are of it, its sidecar and lock, and what a kill left of writing these; the sidecar after it. */
  readonly paths: readonly string[];
  /** The partial itself is there. */
  readonly hasBytes: boolean;
  /** Null if there is none, or a damaged one. */
  readonly sidecar: Sidecar | null;
  /** Id of the gateway that downloads it; null if it is not known. */
  readonly gateway: string | null;
  /** Another process may be writing it. */
  readonly isLocked: boolean;
  /** On the disk. */
  readonly bytes: number;
  /** When any of it was written last, ms. */
  readonly modifiedAt: number;
}

/** Of a repository. `gateway`: id of this one. Throws `cache_unwritable`. */
export function partialEntries(cacheDir: string, repo: string, gateway: string): Promise<PartialEntry[]> {
  return orCacheError("its partials", async () => {
    const folder = blobsFolder(cacheDir, repo);
    // In this order the sidecar, which names the owner, is removed after the partial.
    const names = (await namesIn(folder)).sort();
    const entries: PartialEntry[] = [];
    for (const digest of new Set(names.flatMap((name) => digestOfPartial(name) ?? []))) {
      const partial = partialPath(cacheDir, repo, digest);
      const places = names.filter((name) => digestOfPartial(name) === digest).map((name) => `${folder}/${name}`);
      const files = await Promise.all(places.map(async (path) => ({ path, file: await fileAt(path) })));
      const own = files.flatMap(({ path, file }) => (file ? { path, file } : []));
      if (own.length === 0) continue;
      const [sidecar, holder] = [await readSidecar(partial), await partialHolder(partial, gateway)];
      entries.push({
        digest,
        partial,
        paths: own.map(({ path }) => path),
        hasBytes: own.some(({ path }) => path === partial),
        sidecar,
        gateway: holder?.gateway ?? sidecar?.gateway ?? null,
        isLocked: holder?.isLive ?? false,
        bytes: own.reduce((sum, { file }) => sum + onDisk(file), 0),
        modifiedAt: Math.max(...own.map(({ file }) => file.mtimeMs)),
      });
    }
    return entries;
  });
}

/** What a file takes on the disk: one that is written at several places has holes. */
export function onDisk({ size, blocks }: Stats): number {
  return Number.isFinite(blocks) ? Math.min(size, blocks * 512) : size;
}
