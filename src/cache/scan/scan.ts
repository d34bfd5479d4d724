// Reads the hub cache folder: its models, and a signature of what the router could serve. Writes nothing.
import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError, ignoreDangling, isAbsent, systemCode } from "../../core/errors.ts";
import type { CachedModel, CacheSnapshot, InventoryEntry, Knowable } from "../../plan/observed.ts";
import { storedFile } from "../../plan/removals.ts";
import { type GgufMetadata, readGgufMetadata } from "../gguf/metadata.ts";
import {
  aliasTags,
  contentKey,
  groupModels,
  type ModelGroup,
  type Snapshot,
  type SnapshotFile,
} from "../layout/models.ts";
import type { Damage } from "./damage.ts";
import { faultsIn } from "./faults.ts";
import { type CachePresence, createCachePresence } from "./presence.ts";
import { readSnapshot } from "./snapshot-files.ts";

export interface CacheScanner {
  scan(): Promise<Knowable<CacheSnapshot>>;
}

/** Errors: `cache_unwritable` where it cannot be read. */
export async function cacheNow(scanner: CacheScanner): Promise<CacheSnapshot> {
  const cache = await scanner.scan();
  if (cache.state === "unknown") throw new GatewayError("cache_unwritable", cache.why);
  return cache.value;
}

/** How many repositories are read at once: enough to keep the disk busy, few enough to leave it to others. */
const parallelRepos = 8;

/** `inventory`: what was pulled at a revision of its own is served from there, and not as refs/main has it. */
export function createCacheScanner(
  cacheDir: string,
  presence: CachePresence = createCachePresence(cacheDir, () => ({ count: 0, place: null })),
  inventory: () => readonly InventoryEntry[] = () => [],
  isDamaged: Damage["has"] = () => false,
): CacheScanner {
  // By content, as a damaged blob is mended under the same name.
  const metadata = new Map<string, GgufMetadata | null>();

  async function scan(): Promise<Knowable<CacheSnapshot>> {
    let entries: string[];
    let place: string;
    try {
      entries = await readdir(cacheDir);
      const { dev, ino } = await stat(cacheDir);
      place = `${dev}:${ino}`;
    } catch (error) {
      const isGone = systemCode(error) === "ENOENT";
      const doubt = isGone ? presence.doubt(null, 0) : null;
      if (isGone && doubt === null)
        return { state: "known", value: { models: [], signature: "empty", unreadable: [], faults: [], whole: [] } };
      const why = `the model cache ${cacheDir} cannot be read (${systemCode(error) ?? String(error)})`;
      return { state: "unknown", why: doubt ?? why };
    }
    const repos = entries.filter((name) => /^models--[^-].*--.+/.test(name)).sort();
    const doubt = presence.doubt(place, repos.length);
    if (doubt !== null) return { state: "unknown", why: doubt };
    const models: CachedModel[] = [];
    const hash = createHash("sha256");
    const unreadable: string[] = [];
    const faults: string[] = [];
    const whole: string[] = [];
    const used = new Set<string>();
    const identity = await identityOf(cacheDir);
    const found = await mapLimited(repos, parallelRepos, async (folder) => {
      const repo = folder.slice("models--".length).replace("--", "/");
      const root = join(cacheDir, folder);
      const own = await faultsIn(root);
      return { folder, repo, own, read: await readRepo(root, repo, own.length === 0, used) };
    });
    // Of a cache that went while it was read the models would seem deleted, and be pulled again into its place.
    if (identity === null || identity !== (await identityOf(cacheDir))) {
      // Nor do files that had just gone have no metadata.
      metadata.clear();
      return { state: "unknown", why: `the model cache ${cacheDir} went away while it was read` };
    }
    for (const { folder, repo, own, read } of found) {
      if (read === null) unreadable.push(repo);
      else models.push(...read.models);
      if (own.length === 0) whole.push(folder);
      faults.push(...own);
      hash.update(JSON.stringify([read?.signature ?? repo, own.length === 0]));
    }
    for (const key of metadata.keys()) if (!used.has(key)) metadata.delete(key);
    const signature = hash.digest("hex").slice(0, 16);
    return { state: "known", value: { models, signature, unreadable, faults, whole, place } };
  }

  async function readRepo(
    root: string,
    repo: string,
    isWhole: boolean,
    used: Set<string>,
  ): Promise<{ models: CachedModel[]; signature: string } | null> {
    try {
      const main = await readRef(join(root, "refs", "main"));
      const commits = await listFolders(join(root, "snapshots"));
      const snapshots = await Promise.all(
        commits.map(async (commit) => judged(repo, await readSnapshot(join(root, "snapshots", commit), commit))),
      );
      const ordered = snapshots.toSorted(
        (a, b) => Number(b.commit === main) - Number(a.commit === main) || newest(b) - newest(a),
      );
      // The router does not see a repository with faults, so it lists none of its models by itself.
      const groups = groupModels(ordered, isWhole ? main : null, pinnedFiles(repo, inventory()));
      const models = await Promise.all(groups.map((group) => describe(root, repo, group, used)));
      return { models, signature: JSON.stringify([repo, main, ordered]) };
    } catch (error) {
      // One folder that cannot be read says nothing of the others; its own models stay unknown.
      if (systemCode(error) === undefined) throw error;
      return null;
    }
  }

  function judged(repo: string, { commit, files }: Snapshot): Snapshot {
    return { commit, files: files.map((file) => ({ ...file, damage: damageOf(repo, commit, file) })) };
  }

  function damageOf(repo: string, commit: string, file: SnapshotFile): string | null {
    const { path, size } = file;
    const stored = size === null ? undefined : storedFile(inventory(), { repo, commit, ...file });
    if (stored && stored.size !== size) return `${path} has ${size} bytes instead of ${stored.size}`;
    return isDamaged(contentKey(repo, commit, file)) ? `${path} is not what its checksum says` : null;
  }

  async function describe(root: string, repo: string, group: ModelGroup, used: Set<string>): Promise<CachedModel> {
    const folder = join(root, "snapshots", group.commit);
    const files = group.files.map((file) => join(folder, file.path));
    const [first] = group.files;
    const key = first ? contentKey(repo, group.commit, first) : "";
    used.add(key);
    let read = metadata.get(key);
    if (read === undefined && group.complete && files[0] !== undefined) {
      read = await readGgufMetadata(files[0]);
      metadata.set(key, read);
    }
    return {
      id: `${repo}:${group.tag}`,
      repo,
      tag: group.tag,
      aliases: aliasTags(group).map((tag) => `${repo}:${tag}`),
      routerId: group.routerTag === null ? null : `${repo}:${group.routerTag}`,
      upstreamId: `${repo}:${group.upstreamTag}`,
      commit: group.commit,
      files,
      blobs: group.files.map((file) => file.blob),
      bytes: group.files.reduce((sum, file) => sum + (file.size ?? 0), 0),
      complete: group.complete,
      damage: [...group.files, group.projector].find((file) => (file?.damage ?? null) !== null)?.damage ?? null,
      projector: group.projector ? join(folder, group.projector.path) : null,
      nCtxTrain: read?.contextLength ?? null,
      modifiedAt: Math.max(...group.files.map((file) => file.modifiedAt)),
      digest: first?.blob ?? null,
      architecture: read?.architecture ?? null,
      fileType: read?.fileType ?? null,
      sizeLabel: read?.sizeLabel ?? null,
      pooling: read?.pooling ?? null,
    };
  }

  return { scan };
}

function pinnedFiles(repo: string, inventory: readonly InventoryEntry[]): ReadonlyMap<string, string> {
  const own = inventory.filter((entry) => entry.repo === repo && entry.revision !== "main");
  return new Map(own.flatMap(({ commit, files }) => files.map(({ path }) => [path, commit])));
}

/** Of a folder; null where there is none. */
async function identityOf(path: string): Promise<string | null> {
  const found = await stat(path).catch(ignoreDangling);
  return found && `${found.dev}:${found.ino}`;
}

function newest(snapshot: Snapshot): number {
  return Math.max(0, ...snapshot.files.map((file) => file.modifiedAt));
}

async function readRef(path: string): Promise<string | null> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    if (isAbsent(error) || systemCode(error) === "ELOOP") return null;
    throw error;
  }
}

async function listFolders(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

/** Runs a task for each item, a few at a time; results in the items' order. */
async function mapLimited<T, R>(items: readonly T[], limit: number, task: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  async function worker(): Promise<void> {
    while (next < items.length) {
      const index = next++;
      results[index] = await task(items[index] as T);
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}
