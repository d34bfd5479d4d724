// Reads the hub cache folder: its models, and a signature of what the router could serve. Writes nothing.
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError, ignoreDangling, reasonOf, systemCode } from "../../core/errors.ts";
import { type FileFacts, type FoundModel, modelsIn, noFacts } from "../../plan/cached-models.ts";
import type { CachedModel, CacheSnapshot, InventoryEntry, Knowable } from "../../plan/observed.ts";
import { storedFile } from "../../plan/removals.ts";
import { stat } from "../../state/files.ts";
import { readGgufFacts } from "../gguf/metadata.ts";
import type { CachedRepo } from "../layout/cached-repo.ts";
import { contentKey, type Snapshot, type SnapshotFile } from "../layout/models.ts";
import type { RepoLink } from "../report/repo-files.ts";
import type { Damage } from "./damage.ts";
import { type CachePresence, createCachePresence } from "./presence.ts";
import { type RepoFolder, readRepoFolder } from "./repo-folder.ts";

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
  inventory: () => readonly InventoryEntry[] = () => noEntries,
  hashed: Damage["hashed"] = () => noHashes,
): { readonly scan: () => Promise<Knowable<CacheSnapshot>> } {
  // By content, as a damaged blob is repaired under the same name; of what could not be read there is none.
  const metadata = new Map<string, FileFacts>();
  let last: { readonly repos: readonly RepoScan[]; readonly value: CacheSnapshot } | null = null;

  async function scan(): Promise<Knowable<CacheSnapshot>> {
    const listed = await listRepos(cacheDir, presence);
    if (!("folders" in listed)) return listed;
    const { folders, place } = listed;
    const known = new Map(last?.repos.map((repo) => [repo.folder, repo]));
    const repos: RepoScan[] = [];
    const queue = folders.entries();
    const readOn = async (): Promise<void> => {
      for (const [at, folder] of queue) repos[at] = await readRepo(folder, known.get(folder));
    };
    await Promise.all(Array.from({ length: atOnce }, readOn));
    // Of a cache that went while it was read the models would seem deleted, and be pulled again into its place.
    if (place !== (await identityOf(cacheDir)))
      return { state: "unknown", why: `the model cache ${cacheDir} went away while it was read` };
    if (!last || last.value.place !== place || !isSame(last.repos, repos))
      last = { repos, value: snapshotOf(cacheDir, repos, place) };
    return { state: "known", value: last.value };
  }

  async function readRepo(name: string, known: RepoScan | undefined): Promise<RepoScan> {
    const repo = name.slice("models--".length).replace("--", "/");
    const root = join(cacheDir, name);
    const unreadable: RepoScan = { folder: name, repo, found: null, models: null, faults: [], seen: repo };
    // First: what changes meanwhile is for the next scan.
    const ours = [inventory(), hashed()];
    try {
      const folder = await readRepoFolder(root, { withBlobs: false, known: known?.basis?.[0] });
      if (folder === null) return { ...unreadable, models: [] };
      const basis = [folder, ...ours] as const;
      if (known?.basis && isSame(basis, known.basis)) return known;
      const { faults } = folder;
      // A folder that cannot be read hides files, but those of other repositories are known.
      if (folder.failure !== null) return { ...unreadable, faults, seen: seenOf([repo, faults]) };
      const main = folder.refs.find((ref) => ref.name === "main")?.commit ?? null;
      const snapshots = folder.snapshots
        .map(({ commit, files }) => ({ commit, files: ggufFiles(repo, commit, files) }))
        .toSorted((a, b) => Number(b.commit === main) - Number(a.commit === main) || newest(b) - newest(a));
      // The router does not see a repository with faults, so it lists none of its models by itself.
      const found: CachedRepo = { repo, root, refs: folder.refs, snapshots, isFaulty: faults.length > 0 };
      const models = await Promise.all(modelsIn(found, inventory()).map((model) => describe(repo, model)));
      const seen = seenOf([repo, main, snapshots, faults.length === 0]);
      // What could not be read is read again: its folder may have been moved away meanwhile, and back.
      const isRead = models.every(({ complete, architecture }) => !complete || architecture !== null);
      return { folder: name, repo, found, models, faults, seen, ...(isRead ? { basis } : {}) };
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
    return hashed().get(contentKey(repo, commit, file)) === true ? `${path} is not what its checksum says` : null;
  }

  async function describe(repo: string, { group, model }: FoundModel): Promise<CachedModel> {
    const [first] = group.files;
    const key = first ? contentKey(repo, group.commit, first) : "";
    let facts = metadata.get(key) ?? null;
    if (facts === null && group.complete) facts = await readFacts(model.files[0] ?? "");
    if (facts !== null) metadata.set(key, facts);
    return { ...model, ...(facts ?? noFacts) };
  }

  return { scan };
}

async function readFacts(path: string): Promise<FileFacts | null> {
  const details = await readGgufFacts(path);
  if (!details) return null;
  const { contextLength, architecture, fileType, sizeLabel, pooling } = details;
  return { nCtxTrain: contextLength, architecture, fileType, sizeLabel, pooling };
}

const [noEntries, noHashes]: [readonly InventoryEntry[], ReadonlyMap<string, boolean>] = [[], new Map()];

/** Repositories that are read at once. 250 at once held the event loop for 120 ms and took 110 MB. */
const atOnce = 8;

interface RepoScan {
  readonly folder: string;
  readonly repo: string;
  /** Null if there is none, or it cannot be read. */
  readonly found: CachedRepo | null;
  /** Null if the folder cannot be read. */
  readonly models: readonly CachedModel[] | null;
  readonly faults: readonly string[];
  /** Changes with what could be served. */
  readonly seen: string;
  /** What it was made from: the next scan that finds the very same answers with this one. */
  readonly basis?: readonly [folder: RepoFolder, ...ours: unknown[]];
}

function isSame(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((each, at) => each === others[at]);
}

function seenOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}

function snapshotOf(dir: string, repos: readonly RepoScan[], place: string): CacheSnapshot {
  return {
    dir,
    models: repos.flatMap(({ models }) => models ?? []),
    repos: repos.flatMap(({ found }) => found ?? []),
    signature: seenOf(repos.map(({ seen }) => seen)).slice(0, 16),
    unreadable: repos.flatMap(({ repo, models }) => (models === null ? repo : [])),
    faults: repos.flatMap(({ faults }) => faults),
    whole: repos.flatMap(({ folder, faults }) => (faults.length === 0 ? folder : [])),
    place,
  };
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
    const why = `the model cache ${cacheDir} cannot be read (${reasonOf(error)})`;
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
