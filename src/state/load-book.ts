// loads.json: with which settings each model's process gave a token last, which ones failed since, and the contexts that were chosen,
// by the router's ids.
import { join } from "node:path";
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { createSerial } from "../core/serial.ts";
import {
  type ChosenContext,
  isSameLoad,
  type LoadFacts,
  type LoadInputs,
  type LoadRecord,
} from "../plan/load-record.ts";
import { hasFallback } from "../plan/rollback.ts";
import { readJsonState, type StateFiles } from "./state-folder.ts";

export type LoadBook = Awaited<ReturnType<typeof openLoadBook>>;

/** With what it was chosen for. */
export interface RememberedContext extends ChosenContext {
  /** Names all that decides it but the limits. */
  readonly key: string;
  /** Bytes by device. */
  readonly limits: Readonly<Record<string, number>>;
}

/** Models come and go; those that were loaded longest ago are forgotten. */
const mostEntries = 500;

export async function openLoadBook(options: {
  readonly stateDir: string;
  readonly warn: (message: string, fields: object) => void;
  readonly files: StateFiles;
}) {
  const { warn, files } = options;
  const path = join(options.stateDir, "loads.json");
  const known = await readJsonState(path, readBook, { files, warn });
  const records = new Map(known?.records);
  const contexts = new Map(known?.contexts);
  const serial = createSerial();

  function note(id: string, record: LoadRecord): void {
    records.delete(id);
    records.set(id, record);
    for (const oldest of [...records.keys()].slice(0, -mostEntries)) records.delete(oldest);
    write();
  }

  function write(): void {
    const models = Object.fromEntries([...records].map(([id, record]) => [id, recordBody(record)]));
    const text = `${JSON.stringify({ models, contexts: Object.fromEntries(contexts) }, null, 2)}\n`;
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
    facts: (): LoadFacts => ({ records, contexts }),
    /** For what it was chosen; undefined: none was. */
    chosen: (id: string): RememberedContext | undefined => contexts.get(id),
    choose: (id: string, context: RememberedContext): void => {
      contexts.delete(id);
      contexts.set(id, context);
      for (const oldest of [...contexts.keys()].slice(0, -mostEntries)) contexts.delete(oldest);
      write();
    },
    /** A process has given a token. */
    verified: (id: string, inputs: LoadInputs): void => {
      const known = records.get(id);
      if (known && isSameLoad(known.verified, inputs)) return;
      // The settings that worked may be in force in place of those that failed.
      note(id, { verified: inputs, failed: known?.failed ?? null });
    },
    /** Whether other settings, which have worked, can take the place of these; not twice. */
    hasFallback: (id: string, inputs: LoadInputs): boolean => {
      const known = records.get(id);
      if (known === undefined || (known.failed && isSameLoad(known.failed, inputs))) return false;
      return hasFallback(known, inputs);
    },
    /** No process gives a token with these. */
    failed: (id: string, inputs: LoadInputs, why: string): void => {
      const verified = records.get(id)?.verified;
      if (verified) note(id, { verified, failed: { ...inputs, why } });
    },
    forgive,
    /** Where no context could be chosen it is tried again. */
    forgiveChoices: (): void => {
      for (const [id, { tokens }] of contexts) if (tokens === null) contexts.delete(id);
    },
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

interface Book {
  readonly records: readonly (readonly [string, LoadRecord])[];
  readonly contexts: readonly (readonly [string, RememberedContext])[];
}

function readBook(value: unknown): Book | null {
  if (!isJsonObject(value)) return null;
  const records = readAll(value["models"], readRecord);
  const contexts = readAll(value["contexts"], readContext);
  return records && contexts && { records, contexts };
}

/** Null: one of them cannot be understood. */
function readAll<T>(value: unknown, read: (entry: JsonObject) => T | null): [string, T][] | null {
  if (!isJsonObject(value)) return null;
  const entries = Object.entries(value).map(([id, entry]): [string, T] | null => {
    const found = isJsonObject(entry) ? read(entry) : null;
    return found && [id, found];
  });
  return entries.every((entry) => entry !== null) ? entries : null;
}

function readContext({ tokens, why, key, limits }: JsonObject): RememberedContext | null {
  const isSize = tokens === null || typeof tokens === "number";
  if (!isSize || typeof why !== "string" || typeof key !== "string" || !isJsonObject(limits)) return null;
  const entries = Object.entries(limits).filter((entry): entry is [string, number] => typeof entry[1] === "number");
  return { tokens, why, key, limits: Object.fromEntries(entries) };
}

function readRecord({ verified, failed }: JsonObject): LoadRecord | null {
  const inputs = readInputs(verified);
  return inputs && { verified: inputs, failed: readFailed(failed) };
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
