// Files of the model cache that do not match their checksums. Hashing a large model takes minutes, so only the files of a model
// that failed to load are hashed, each content once. Writes nothing.
import { createSerial } from "../../core/serial.ts";
import { type CachedModel, filesOf, type InventoryEntry } from "../../plan/observed.ts";
import { pathInRepo, storedFile } from "../../plan/removals.ts";
import { hasDigest } from "../download/hash.ts";
import { isDigest, repoFolder } from "../layout/layout.ts";
import { contentKey } from "../layout/models.ts";
import { readSnapshotFile } from "./repo-folder.ts";

export type Damage = ReturnType<typeof createDamage>;

export function createDamage(cacheDir: string, inventory: () => readonly InventoryEntry[]) {
  /** Whether a content, by its `contentKey`, is damaged. Replaced by each change. */
  let hashed: ReadonlyMap<string, boolean> = new Map();
  const closing = new AbortController();
  // One at a time: two would share the disk.
  const serial = createSerial();

  async function isNewlyDamaged({ repo, commit }: CachedModel, path: string, place: string): Promise<boolean> {
    const file = await readSnapshotFile(repoFolder(cacheDir, repo), commit, path);
    if (!file) return false;
    const key = contentKey(repo, commit, file);
    const digest = file.blob ?? storedFile(inventory(), { repo, commit, ...file })?.blob ?? "";
    if (file.size === null || hashed.has(key) || !isDigest(digest)) return false;
    const isDamaged = !(await hasDigest(place, digest, closing.signal));
    hashed = new Map([...hashed, [key, isDamaged]]);
    return isDamaged;
  }

  async function checkNow(model: CachedModel): Promise<boolean> {
    let found = false;
    for (const place of filesOf(model)) found = (await isNewlyDamaged(model, pathInRepo(model, place), place)) || found;
    return found;
  }

  return {
    /** Hashes the model's files; true if that finds a damaged one. Errors: `cache_unwritable`, `cancelled`. */
    check: (model: CachedModel): Promise<boolean> => serial(() => checkNow(model)),
    hashed: () => hashed,
    /** The files of a repository were verified or replaced. */
    forget: (repo: string): void => {
      hashed = new Map([...hashed].filter(([key]) => !key.startsWith(`${repo} `)));
    },
    close: (): void => closing.abort(),
  };
}
