// last-used.json: when each model was last used, by the router's ids. A hint for people, so written seldom and never waited for.
import { join } from "node:path";
import { isJsonObject } from "../core/json.ts";
import { plainStateFiles, readJsonState, type StateFiles } from "./state-folder.ts";
import { createWriteBehind } from "./write-behind.ts";

export type LastUsed = Awaited<ReturnType<typeof openLastUsed>>;

const everyMs = 60_000;
/** Models come and go; those that were used longest ago are forgotten. */
const mostEntries = 500;

export async function openLastUsed(options: {
  readonly stateDir: string;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
  readonly everyMs?: number;
  readonly files?: StateFiles;
}) {
  const { warn, now, files = plainStateFiles } = options;
  const path = join(options.stateDir, "last-used.json");
  const times = new Map(await readJsonState(path, readTimes, { files, warn }));
  const behind = createWriteBehind(options.everyMs ?? everyMs, write);

  async function write(): Promise<void> {
    const newest = [...times].toSorted(([, a], [, b]) => b - a).slice(0, mostEntries);
    const body = Object.fromEntries(newest.map(([id, ms]) => [id, new Date(ms).toISOString()]));
    try {
      await files.write(path, `${JSON.stringify({ models: body }, null, 2)}\n`);
    } catch (error) {
      warn("the times of last use could not be written", { error: String(error) });
    }
  }

  return {
    /** It is being used now. */
    note: (id: string): void => {
      times.set(id, now());
      behind.later();
    },
    /** ms */
    entries: (): ReadonlyMap<string, number> => times,
    /** Writes what is not written yet. */
    close: behind.close,
  };
}

function readTimes(value: unknown): [string, number][] | null {
  if (!isJsonObject(value) || !isJsonObject(value["models"])) return null;
  const entries = Object.entries(value["models"]).map(([id, at]): [string, number] => [
    id,
    typeof at === "string" ? Date.parse(at) : Number.NaN,
  ]);
  return entries.every(([, ms]) => Number.isFinite(ms)) ? entries : null;
}
