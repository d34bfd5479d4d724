// inventory.json: what this gateway pulled or imported, and so may delete.
import { join } from "node:path";
import { isJsonObject, type Json } from "../core/merge-patch.ts";
import { readJsonState, writeState } from "../desired/atomic-file.ts";
import type { InventoryEntry } from "../plan/observed.ts";

export interface Inventory {
  entries(): readonly InventoryEntry[];
  get(id: string): InventoryEntry | undefined;
  put(entry: InventoryEntry): Promise<void>;
  remove(id: string): Promise<void>;
  /** Remembers which entries the document marks `keep`, so that they stay when they leave it. */
  noteKept(ids: ReadonlySet<string>, unkept: ReadonlySet<string>): Promise<void>;
}

export async function openInventory(
  stateDir: string,
  warn: (message: string, fields: object) => void,
): Promise<Inventory> {
  const path = join(stateDir, "inventory.json");
  let entries =
    (await readJsonState(path, readEntries, (aside) =>
      warn("the inventory was unreadable and was set aside", { path: aside }),
    )) ?? [];
  let queue: Promise<unknown> = Promise.resolve();

  function save(change: (entries: readonly InventoryEntry[]) => readonly InventoryEntry[]): Promise<void> {
    const result = queue.then(async () => {
      const next = change(entries);
      if (next === entries) return;
      await writeState(path, `${JSON.stringify({ models: next }, null, 2)}\n`);
      entries = next;
    });
    queue = result.catch(() => undefined);
    return result;
  }

  return {
    entries: () => entries,
    get: (id) => entries.find((entry) => entry.id === id),
    put: (entry) => save((all) => [...all.filter((other) => other.id !== entry.id), entry]),
    remove: (id) => save((all) => all.filter((entry) => entry.id !== id)),
    noteKept: (ids, unkept) =>
      save((all) => {
        const next = all.map((entry) => {
          const keep = ids.has(entry.id) || (entry.keep && !unkept.has(entry.id));
          return keep === entry.keep ? entry : { ...entry, keep };
        });
        return next.every((entry, index) => entry === all[index]) ? all : next;
      }),
  };
}

function readEntries(value: unknown): readonly InventoryEntry[] | null {
  if (!isJsonObject(value) || !Array.isArray(value["models"])) return null;
  const models = value["models"] as readonly Json[];
  return models.every(isEntry) ? (models as unknown as readonly InventoryEntry[]) : null;
}

/** Removing deletes what an entry names, so a mangled one must not be believed. */
function isEntry(value: Json): boolean {
  if (!isJsonObject(value)) return false;
  const texts = ["id", "repo", "tag", "revision", "commit", "addedAt"].every((key) => typeof value[key] === "string");
  return texts && typeof value["keep"] === "boolean" && Array.isArray(value["files"]) && value["files"].every(isFile);
}

function isFile(value: Json): boolean {
  return (
    isJsonObject(value) &&
    typeof value["path"] === "string" &&
    typeof value["blob"] === "string" &&
    typeof value["size"] === "number"
  );
}
