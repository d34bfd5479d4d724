// loads.json: with which settings each model's process gave a token last, and which ones failed since, by the router's ids.
import { join } from "node:path";
import { isJsonObject } from "../core/json.ts";
import { createSerial } from "../core/serial.ts";
import type { LoadInputs, LoadRecord, LoadRecords } from "../plan/load-record.ts";
import { hasFallback, isSame } from "../plan/rollback.ts";
import { readJsonState, type StateFiles } from "./state-folder.ts";

export type LoadBook = Awaited<ReturnType<typeof openLoadBook>>;

/** Models come and go; those that were loaded longest ago are forgotten. */
const mostEntries = 500;

export async function openLoadBook(options: {
  readonly stateDir: string;
  readonly warn: (message: string, fields: object) => void;
  readonly files: StateFiles;
}) {
  const { warn, files } = options;
  const path = join(options.stateDir, "loads.json");
  const records = new Map(await readJsonState(path, readRecords, { files, warn }));
  const serial = createSerial();

  function note(id: string, record: LoadRecord): void {
    records.delete(id);
    records.set(id, record);
    for (const oldest of [...records.keys()].slice(0, -mostEntries)) records.delete(oldest);
    write();
  }

  function write(): void {
    const models = Object.fromEntries([...records].map(([id, record]) => [id, recordBody(record)]));
    const text = `${JSON.stringify({ models }, null, 2)}\n`;
    void serial(() => files.write(path, text)).catch((error: unknown) =>
      warn("how models were loaded could not be written", { error: String(error) }),
    );
  }

  /** Failures of the models that the test names may be tried again. */
  function forgive(isMeant: (id: string) => boolean): void {
    for (const [id, record] of records)
      if (record.failed && isMeant(id)) note(id, { verified: record.verified, failed: null });
  }

  return {
    records: (): LoadRecords => records,
    /** A process has given a token. */
    verified: (id: string, inputs: LoadInputs): void => {
      const known = records.get(id);
      if (known && isSame(known.verified, inputs)) return;
      // The settings that worked may be in force in place of those that failed.
      note(id, { verified: inputs, failed: known?.failed ?? null });
    },
    /** Whether other settings, which have worked, can take the place of these; not twice. */
    hasFallback: (id: string, inputs: LoadInputs): boolean => {
      const known = records.get(id);
      if (known === undefined || (known.failed && isSame(known.failed, inputs))) return false;
      return hasFallback(known, inputs);
    },
    /** No process gives a token with these. */
    failed: (id: string, inputs: LoadInputs, why: string): void => {
      const verified = records.get(id)?.verified;
      if (verified) note(id, { verified, failed: { ...inputs, why } });
    },
    forgive,
    /** Writes what is not written yet. */
    close: (): Promise<void> => serial(async () => undefined),
  };
}

function recordBody({ verified, failed }: LoadRecord): object {
  return { verified: inputsBody(verified), ...(failed && { failed: { ...inputsBody(failed), why: failed.why } }) };
}

function inputsBody({ settings, files, engine }: LoadInputs): object {
  return { settings: Object.fromEntries(settings), files, engine };
}

function readRecords(value: unknown): [string, LoadRecord][] | null {
  if (!isJsonObject(value) || !isJsonObject(value["models"])) return null;
  const entries = Object.entries(value["models"]).map(([id, entry]): [string, LoadRecord] | null => {
    if (!isJsonObject(entry)) return null;
    const verified = readInputs(entry["verified"]);
    return verified && [id, { verified, failed: readFailed(entry["failed"]) }];
  });
  return entries.every((entry) => entry !== null) ? entries : null;
}

function readFailed(value: unknown): LoadRecord["failed"] {
  const inputs = readInputs(value);
  const why = isJsonObject(value) ? value["why"] : undefined;
  return inputs && typeof why === "string" ? { ...inputs, why } : null;
}

function readInputs(value: unknown): LoadInputs | null {
  if (!isJsonObject(value) || !isJsonObject(value["settings"])) return null;
  const { files, engine, settings } = value;
  const entries = Object.entries(settings).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return typeof files === "string" && typeof engine === "string" ? { settings: new Map(entries), files, engine } : null;
}
