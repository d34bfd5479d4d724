// Which files of a repository are one model: its shards, and the projector beside it. The same for the hub's list and the cache's.
// Pure.
import { fileStem, isAuxiliary, isProjector, shardOf } from "../../core/ids.ts";

/** A file, or all shards of one. */
export interface FileGroup<T> {
  readonly folder: string;
  readonly stem: string;
  /** By name, so shards in order. */
  readonly files: readonly T[];
  /** Shards that the names promise; 0 for a model in one file. */
  readonly shards: number;
}

/** Shards of one model share folder, stem and count. */
export function groupFiles<T extends { readonly path: string }>(files: readonly T[]): FileGroup<T>[] {
  const groups = new Map<string, FileGroup<T> & { files: T[] }>();
  for (const file of files.toSorted((a, b) => compare(a.path, b.path))) {
    const { path } = file;
    if (!/\.gguf$/i.test(path) || isAuxiliary(path) || isProjector(path)) continue;
    const [folder, stem, shards] = [folderOf(path), fileStem(path), shardOf(path)?.count ?? 0];
    const key = `${folder}/${stem}/${shards}`;
    const group = groups.get(key) ?? { folder, stem, files: [], shards };
    group.files.push(file);
    groups.set(key, group);
  }
  return [...groups.values()];
}

/** Indexes of shards that are not there. */
export function missingShards({ files, shards }: FileGroup<{ readonly path: string }>): number[] {
  const there = new Set(files.map(({ path }) => shardOf(path)?.index));
  return Array.from({ length: shards }, (_, index) => index + 1).filter((index) => !there.has(index));
}

/** Beside the model or above it first, then F16, then BF16, then the first by name. */
export function chooseProjector<T extends { readonly path: string }>(files: readonly T[], folder: string): T | null {
  const near = ({ path }: T): number => {
    const own = folderOf(path);
    return own === "" || folder === own || folder.startsWith(`${own}/`) ? 0 : 1;
  };
  const precision = ({ path }: T): number => {
    const stem = fileStem(path);
    if (/(?:^|[^a-z0-9])(?:f|fp)16(?![a-z0-9])/i.test(stem)) return 0;
    return /(?:^|[^a-z0-9])bf16(?![a-z0-9])/i.test(stem) ? 1 : 2;
  };
  const ranked = files
    .filter(({ path }) => isProjector(path))
    .toSorted((a, b) => near(a) - near(b) || precision(a) - precision(b) || compare(a.path, b.path));
  return ranked[0] ?? null;
}

export function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** By code unit, so the same on every machine. */
export function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
