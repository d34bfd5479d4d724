// inventory.json: what this gateway pulled or imported, and so may delete.
import { join } from "node:path";
import { readJsonState, writeAtomic } from "../desired/atomic-file.ts";
import type { InventoryEntry } from "../plan/observed.ts";

export interface Inventory {
  entries(): readonly InventoryEntry[];
  get(id: string): InventoryEntry | undefined;
  put(entry: InventoryEntry): Promise<void>;
  remove(id: string): Promise<void>;
  /** Remembers which entries the document marks `keep`, so that they stay when they leave it. */
  noteKept(ids: ReadonlySet<string>, unkept: ReadonlySet<string>): Promise<void>;
}

export async function openInventory(stateDir: string, warn: (message: string, fields: object) => void): Promise<Inventory> {
  const path = join(stateDir, "inventory.json");
  const value = await readJsonState(path, (aside) => warn("the inventory was unreadable and was set aside", { path: aside }));
  let entries: readonly InventoryEntry[] = isInventory(value) ? value.models : [];
  let queue: Promise<unknown> = Promise.resolve();

  function save(change: (entries: readonly InventoryEntry[]) => readonly InventoryEntry[]): Promise<void> {
    const result = queue.then(async () => {
      const next = change(entries);
      if (next === entries) return;
      await writeAtomic(path, `${JSON.stringify({ models: next }, null, 2)}\n`);
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

function isInventory(value: unknown): value is { models: readonly InventoryEntry[] } {
  if (typeof value !== "object" || value === null || !("models" in value) || !Array.isArray(value.models)) return false;
  return value.models.every(
    (entry: unknown) => typeof entry === "object" && entry !== null && "id" in entry && typeof entry.id === "string" && "files" in entry && Array.isArray(entry.files),
  );
}
