// memory.json: what models take, by files, settings and engine build, so that the engine is asked once.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { isJsonObject } from "../core/json.ts";
import { readJsonState, type StateFiles } from "../state/state-folder.ts";
import { createWriteBehind } from "../state/write-behind.ts";
import type { ByDevice, Estimate, Parts } from "./need.ts";

export type MemoryBook = Awaited<ReturnType<typeof openMemoryBook>>;

export interface Known {
  readonly estimate: Estimate | null;
  readonly measured: ByDevice | null;
}

const nothing: Known = { estimate: null, measured: null };

/** Those that were asked for longest ago are forgotten. */
const mostEntries = 2_000;
const writeAfterMs = 1_000;

/** Errors: `state_unwritable` for a file that can neither be read nor set aside. */
export async function openMemoryBook(options: {
  readonly stateDir: string;
  readonly warn: (message: string, fields: object) => void;
  readonly files: StateFiles;
}) {
  const { warn, files } = options;
  const path = join(options.stateDir, "memory.json");
  const entries = new Map(await readJsonState(path, readEntries, { files, warn }));
  const behind = createWriteBehind(writeAfterMs, write);

  async function write(): Promise<void> {
    const models = [...entries].slice(-mostEntries).map(([key, known]) => [key, entryBody(known)]);
    try {
      await files.write(path, `${JSON.stringify({ models: Object.fromEntries(models) })}\n`);
    } catch (error) {
      warn("what models take of memory could not be written", { error: String(error) });
    }
  }

  return {
    get: (key: string): Known => entries.get(hashOf(key)) ?? nothing,
    note: (key: string, news: Partial<Known>): void => {
      const name = hashOf(key);
      const known = entries.get(name) ?? nothing;
      entries.delete(name);
      entries.set(name, { ...known, ...news });
      behind.later();
    },
    /** Writes what is not written yet. */
    close: behind.close,
  };
}

/** Keys have whole paths in them. */
function hashOf(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 32);
}

function entryBody({ estimate, measured }: Known) {
  const rows = [...(estimate ?? [])].map(([device, { model, context, compute }]) => [
    device,
    [model, context, compute],
  ]);
  return {
    ...(estimate && { estimate: Object.fromEntries(rows) }),
    ...(measured && { measured: Object.fromEntries(measured) }),
  };
}

function readEntries(value: unknown): [string, Known][] | null {
  if (!isJsonObject(value) || !isJsonObject(value["models"])) return null;
  const entries = Object.entries(value["models"]).map(([key, entry]): [string, Known] | null => {
    if (!isJsonObject(entry)) return null;
    const estimate = readDevices(entry["estimate"], partsOf);
    const measured = readDevices(entry["measured"], (bytes) => (Number.isFinite(bytes) ? Number(bytes) : null));
    return estimate === undefined || measured === undefined ? null : [key, { estimate, measured }];
  });
  return entries.every((entry) => entry !== null) ? entries : null;
}

/** null: there is none; undefined: it cannot be understood. */
function readDevices<T>(value: unknown, read: (entry: unknown) => T | null): ReadonlyMap<string, T> | null | undefined {
  if (value === undefined) return null;
  if (!isJsonObject(value)) return undefined;
  const found = Object.entries(value).map(([device, entry]) => [device, read(entry)] as const);
  return found.every((entry): entry is readonly [string, T & {}] => entry[1] !== null) ? new Map(found) : undefined;
}

function partsOf(value: unknown): Parts | null {
  if (!Array.isArray(value) || value.length !== 3 || !value.every(Number.isFinite)) return null;
  const [model, context, compute] = value as [number, number, number];
  return { model, context, compute };
}
