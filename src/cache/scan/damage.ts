// Files of the model cache that do not match their checksums. Hashing a large model takes minutes, so only the files of a model
// that failed to load are hashed, each content once. Writes nothing.

import { createSerial } from "../../core/serial.ts";
import type { CachedModel, InventoryEntry } from "../../plan/observed.ts";
import { pathInRepo, storedFile } from "../../plan/removals.ts";
import { hashFile } from "../download/hash.ts";
import { isDigest } from "../layout/layout.ts";
import { contentKey } from "../layout/models.ts";
import { readFileEntry } from "./snapshot-files.ts";

export interface Damage {
  /** Hashes the model's files; true if that finds a damaged one. Errors: `cache_unwritable`, `cancelled`. */
  check(model: CachedModel): Promise<boolean>;
  /** By `contentKey`. */
  has(key: string): boolean;
  /** The files of a repository were verified or replaced. */
  forget(repo: string): void;
  close(): void;
}

export function createDamage(inventory: () => readonly InventoryEntry[]): Damage {
  /** Whether a content, by its key, is damaged. */
  const hashed = new Map<string, boolean>();
  const closing = new AbortController();
  // One at a time: two would share the disk.
  const serial = createSerial();

  async function isNewlyDamaged({ repo, commit }: CachedModel, path: string, place: string): Promise<boolean> {
    const file = await readFileEntry(place, path);
    if (!file) return false;
    const key = contentKey(repo, commit, file);
    const digest = file.blob ?? storedFile(inventory(), { repo, commit, ...file })?.blob ?? "";
    if (file.size === null || hashed.has(key) || !isDigest(digest)) return false;
    const { sha256, gitSha1 } = await hashFile(place, closing.signal);
    const isDamaged = ![sha256, gitSha1].includes(digest);
    hashed.set(key, isDamaged);
    return isDamaged;
  }

  async function checkNow(model: CachedModel): Promise<boolean> {
    const places = [...model.files, ...(model.projector === null ? [] : [model.projector])];
    let found = false;
    for (const place of places) found = (await isNewlyDamaged(model, pathInRepo(model, place), place)) || found;
    return found;
  }

  return {
    check: (model) => serial(() => checkNow(model)),
    has: (key) => hashed.get(key) === true,
    forget: (repo) => {
      for (const key of hashed.keys()) if (key.startsWith(`${repo} `)) hashed.delete(key);
    },
    close: () => closing.abort(),
  };
}
