// Reads the hub cache folder: its models, and a signature of what the router could serve. Writes nothing.
import { createHash } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError, ignoreDangling, systemCode } from "../../core/errors.ts";
import { type FileFacts, type FoundModel, modelsIn, noFacts } from "../../plan/cached-models.ts";
import type { CachedModel, CacheSnapshot, InventoryEntry, Knowable } from "../../plan/observed.ts";
import { storedFile } from "../../plan/removals.ts";
import { readGgufFacts } from "../gguf/metadata.ts";
import type { CachedRepo } from "../layout/cached-repo.ts";
import { contentKey, type Snapshot, type SnapshotFile } from "../layout/models.ts";
import type { RepoLink } from "../report/repo-files.ts";
import type { Damage } from "./damage.ts";
import { type CachePresence, createCachePresence } from "./presence.ts";
import { readRepoFolder } from "./repo-folder.ts";

export type CacheScanner = ReturnType<typeof createCacheScanner>;

/** Errors: `cache_unwritable` where it cannot be read. */
export async function cacheNow(scanner: CacheScanner): Promise<CacheSnapshot> {
  const cache = await scanner.scan();
  if (cache.state === "unknown") throw new GatewayError("cache_unwritable", cache.why);
  return cache.value;
}

/** `inventory`: models pulled at a revision of their own are served from there, and not as refs/main has it. */
export function createCacheScanner(
  cacheDir: string,
  presence: CachePresence = createCachePresence(cacheDir, () => ({ count: 0, place: null })),
  inventory: () => readonly InventoryEntry[] = () => [],
  isDamaged: Damage["has"] = () => false,
): { readonly scan: () => Promise<Knowable<CacheSnapshot>> } {
  // Of the last scan; by content, as a damaged blob is repaired under the same name.
  let metadata = new Map<string, FileFacts>();

  async function scan(): Promise<Knowable<CacheSnapshot>> {
    const listed = await listRepos(cacheDir, presence);
    if (!("folders" in listed)) return listed;
    const { folders, place } = listed;
    const read: typeof metadata = new Map();
    const repos = await Promise.all(folders.map((folder) => readRepo(folder, read)));
    // Of a cache that went while it was read the models would seem deleted, and be pulled again into its place.
    if (place !== (await identityOf(cacheDir)))
      return { state: "unknown", why: `the model cache ${cacheDir} went away while it was read` };
    metadata = read;
    const signature = createHash("sha256").update(JSON.stringify(repos.map(({ seen }) => seen)));
    return {
      state: "known",
      value: {
        dir: cacheDir,
        models: repos.flatMap(({ models }) => models ?? []),
        repos: repos.flatMap(({ found }) => found ?? []),
        signature: signature.digest("hex").slice(0, 16),
        unreadable: repos.flatMap(({ repo, models }) => (models === null ? repo : [])),
        faults: repos.flatMap(({ faults }) => faults),
        whole: repos.flatMap(({ folder, faults }) => (faults.length === 0 ? folder : [])),
        place,
      },
    };
  }

  async function readRepo(name: string, read: typeof metadata): Promise<RepoScan> {
    const repo = name.slice("models--".length).replace("--", "/");
    const root = join(cacheDir, name);
    const unreadable: RepoScan = { folder: name, repo, found: null, models: null, faults: [], seen: repo };
    try {
      const folder = await readRepoFolder(root, false);
      if (folder === null) return { ...unreadable, models: [] };
      const { faults } = folder;
      // A folder that cannot be read hides files, but those of other repositories are known.
      if (folder.failure !== null) return { ...unreadable, faults, seen: [repo, faults] };
      const main = folder.refs.find((ref) => ref.name === "main")?.commit ?? null;
      const snapshots = folder.snapshots
        .map(({ commit, files }) => ({ commit, files: ggufFiles(repo, commit, files) }))
        .toSorted((a, b) => Number(b.commit === main) - Number(a.commit === main) || newest(b) - newest(a));
      // The router does not see a repository with faults, so it lists none of its models by itself.
      const found: CachedRepo = { repo, root, refs: folder.refs, snapshots, isFaulty: faults.length > 0 };
      const models = await Promise.all(modelsIn(found, inventory()).map((model) => describe(repo, model, read)));
      return { folder: name, repo, found, models, faults, seen: [repo, main, snapshots, faults.length === 0] };
    } catch (error) {
      if (systemCode(error) === undefined) throw error;
      return unreadable;
    }
  }

  function ggufFiles(repo: string, commit: string, files: readonly RepoLink[]): SnapshotFile[] {
    return files
      .filter(({ path }) => path.endsWith(".gguf"))
      .toSorted((a, b) => (a.path < b.path ? -1 : 1))
      .map((file) => {
        // Without its inode, which another mount of the same disk changes: the router would be reloaded for nothing.
        const { path, size, modifiedAt, blob } = file;
        return { path, size, modifiedAt, blob, damage: damageOf(repo, commit, file) };
      });
  }

  function damageOf(repo: string, commit: string, file: RepoLink): string | null {
    const { path, size } = file;
    const stored = size === null ? undefined : storedFile(inventory(), { repo, commit, ...file });
    if (stored && stored.size !== size) return `${path} has ${size} bytes instead of ${stored.size}`;
    return isDamaged(contentKey(repo, commit, file)) ? `${path} is not what its checksum says` : null;
  }

  async function describe(repo: string, { group, model }: FoundModel, read: typeof metadata): Promise<CachedModel> {
    const [first] = group.files;
    const key = first ? contentKey(repo, group.commit, first) : "";
    let facts = metadata.get(key);
    if (facts === undefined && group.complete) facts = await readFacts(model.files[0] ?? "");
    if (facts !== undefined) read.set(key, facts);
    return { ...model, ...(facts ?? noFacts) };
  }

  return { scan };
}

async function readFacts(path: string): Promise<FileFacts> {
  const details = await readGgufFacts(path);
  if (!details) return noFacts;
  const { contextLength, architecture, fileType, sizeLabel, pooling } = details;
  return { nCtxTrain: contextLength, architecture, fileType, sizeLabel, pooling };
}

interface RepoScan {
  readonly folder: string;
  readonly repo: string;
  /** Null if there is none, or it cannot be read. */
  readonly found: CachedRepo | null;
  /** Null if the folder cannot be read. */
  readonly models: readonly CachedModel[] | null;
  readonly faults: readonly string[];
  /** Changes with what could be served. */
  readonly seen: unknown;
}

/** The folders of repositories; else the cache as it is without them: empty, or unknown. */
async function listRepos(
  cacheDir: string,
  presence: CachePresence,
): Promise<{ readonly folders: readonly string[]; readonly place: string } | Knowable<CacheSnapshot>> {
  try {
    const entries = await readdir(cacheDir);
    const folders = entries.filter((name) => /^models--[^-].*--.+/.test(name)).sort();
    const place = await identityOf(cacheDir);
    const doubt = presence.doubt(place, folders.length);
    if (place === null || doubt !== null) return { state: "unknown", why: doubt ?? `${cacheDir} is gone` };
    return { folders, place };
  } catch (error) {
    const isGone = systemCode(error) === "ENOENT";
    const doubt = isGone ? presence.doubt(null, 0) : null;
    if (isGone && doubt === null)
      return {
        state: "known",
        value: { dir: cacheDir, models: [], repos: [], signature: "empty", unreadable: [], faults: [], whole: [] },
      };
    const why = `the model cache ${cacheDir} cannot be read (${systemCode(error) ?? String(error)})`;
    return { state: "unknown", why: doubt ?? why };
  }
}

/** Device and number of a folder; null where there is none. */
export async function identityOf(path: string): Promise<string | null> {
  const found = await stat(path).catch(ignoreDangling);
  return found && `${found.dev}:${found.ino}`;
}

function newest(snapshot: Snapshot): number {
  return Math.max(0, ...snapshot.files.map((file) => file.modifiedAt));
}
