// Reads the hub cache folder: its models, and a signature of what the router could serve. Writes nothing.
import { createHash } from "node:crypto";
import { lstat, readdir, readFile, readlink, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { GatewayError, systemCode } from "../core/errors.ts";
import { type GgufMetadata, readGgufMetadata } from "../hub/gguf-metadata.ts";
import type { CachedModel, CacheSnapshot, InventoryEntry, Knowable } from "../plan/observed.ts";
import { faultsIn } from "./cache-faults.ts";
import { aliasTags, groupModels, type ModelGroup, type Snapshot, type SnapshotFile } from "./cache-layout.ts";
import { type CachePresence, createCachePresence } from "./cache-presence.ts";

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
const deepestFolder = 6;

/** `inventory`: what was pulled at a revision of its own is served from there, and not as refs/main has it. */
export function createCacheScanner(
  cacheDir: string,
  presence: CachePresence = createCachePresence(cacheDir, () => ({ count: 0, place: null })),
  inventory: () => readonly InventoryEntry[] = () => [],
): CacheScanner {
  // By content (blob name; the path of a plain file) with size and time, as a damaged blob is mended under the same name.
  const metadata = new Map<string, GgufMetadata | null>();

  async function scan(): Promise<Knowable<CacheSnapshot>> {
    let entries: string[];
    let place: string;
    try {
      entries = await readdir(cacheDir);
      const { dev, ino } = await stat(cacheDir);
      place = `${dev}:${ino}`;
    } catch (error) {
      const isAbsent = systemCode(error) === "ENOENT";
      const doubt = isAbsent ? presence.doubt(null, 0) : null;
      if (isAbsent && doubt === null)
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
        commits.map((commit) => readSnapshot(join(root, "snapshots", commit), commit)),
      );
      const ordered = snapshots.toSorted(
        (a, b) => Number(b.commit === main) - Number(a.commit === main) || newest(b) - newest(a),
      );
      // One that cannot be read whole is kept from the router, so that it lists none of its models by itself.
      const groups = groupModels(ordered, isWhole ? main : null, pinnedFiles(repo, inventory()));
      const models = await Promise.all(groups.map((group) => describe(root, repo, group, used)));
      return { models, signature: JSON.stringify([repo, main, ordered]) };
    } catch (error) {
      // One folder that cannot be read says nothing of the others; its own models stay unknown.
      if (systemCode(error) === undefined) throw error;
      return null;
    }
  }

  async function describe(root: string, repo: string, group: ModelGroup, used: Set<string>): Promise<CachedModel> {
    const folder = join(root, "snapshots", group.commit);
    const files = group.files.map((file) => join(folder, file.path));
    const [first] = group.files;
    const key = `${first?.blob ?? files[0] ?? ""}:${first?.size ?? 0}:${first?.modifiedAt ?? 0}`;
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

/** Gone between two looks, or never there, or a file where a folder should be: other tools tidy up meanwhile. */
function isAbsent(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "");
}

async function readSnapshot(root: string, commit: string): Promise<Snapshot> {
  const files: SnapshotFile[] = [];
  async function walk(folder: string, prefix: string, depth: number): Promise<void> {
    const entries = await readdir(folder, { withFileTypes: true });
    await Promise.all(
      entries.map(async (entry) => {
        if (entry.isDirectory()) {
          if (depth < deepestFolder) await walk(join(folder, entry.name), `${prefix}${entry.name}/`, depth + 1);
        } else if (entry.name.endsWith(".gguf")) {
          const file = await readFileEntry(join(folder, entry.name), `${prefix}${entry.name}`, entry.isSymbolicLink());
          if (file) files.push(file);
        }
      }),
    );
  }
  await walk(root, "", 0);
  return { commit, files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)) };
}

/** Null where it went between two looks: that is an ordinary removal, and no folder that cannot be read. */
async function readFileEntry(path: string, relative: string, isLink: boolean): Promise<SnapshotFile | null> {
  try {
    const blob = isLink ? basename(await readlink(path)) : null;
    const target = await stat(path).catch(ignoreDangling);
    const { mtimeMs } = target ?? (await lstat(path));
    return { path: relative, size: target?.isFile() ? target.size : null, modifiedAt: mtimeMs, blob };
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}

function ignoreDangling(error: unknown): null {
  if (isAbsent(error) || systemCode(error) === "ELOOP") return null;
  throw error;
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
