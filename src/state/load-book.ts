// loads.json: with which settings each model's process gave a token last, which ones failed since, and the contexts that were chosen,
// by the router's ids.
import { join } from "node:path";
import { isJsonObject } from "../core/json.ts";
import {
  type ChosenContext,
  isSameLoad,
  type LoadFacts,
  type LoadInputs,
  type LoadRecord,
  type Settings,
} from "../plan/load-record.ts";
import { hasFallback } from "../plan/rollback.ts";
import { readJsonState, type StateFiles } from "./state-folder.ts";
import { createWriteBehind } from "./write-behind.ts";

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

/** ms: the first answer of a process does not wait for it. */
const behindMs = 100;

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
  const behind = createWriteBehind(behindMs, write);

  function note(id: string, record: LoadRecord): void {
    records.delete(id);
    records.set(id, record);
    for (const oldest of [...records.keys()].slice(0, -mostEntries)) records.delete(oldest);
    behind.later();
  }

  async function write(): Promise<void> {
    const models = Object.fromEntries([...records].map(([id, record]) => [id, bodyOf(record)]));
    const chosen = Object.fromEntries([...contexts].map(([id, context]) => [id, saved(context)]));
    const text = `${JSON.stringify({ models, contexts: chosen }, null, 2)}\n`;
    await files
      .write(path, text)
      .catch((error: unknown) => warn("how models were loaded could not be written", { error: String(error) }));
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
      behind.later();
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
    close: behind.close,
  };
}

/** As JSON. */
type Saved<T extends { readonly settings: Settings }> = Omit<T, "settings"> & {
  readonly settings: Readonly<Record<string, string>>;
};

interface SavedBook {
  readonly models: Readonly<
    Record<string, { readonly verified: Saved<LoadInputs>; readonly failed?: Saved<NonNullable<LoadRecord["failed"]>> }>
  >;
  readonly contexts: Readonly<Record<string, Saved<RememberedContext>>>;
}

function saved<T extends { readonly settings: Settings }>(inputs: T): Saved<T> {
  return { ...inputs, settings: Object.fromEntries(inputs.settings) };
}

function bodyOf({ verified, failed }: LoadRecord): SavedBook["models"][string] {
  return { verified: saved(verified), ...(failed && { failed: saved(failed) }) };
}

/** Null where it has another shape. */
function readBook(value: unknown) {
  if (!isBook(value)) return null;
  /** A context of an earlier version has none: it is chosen again. */
  const mapOf = (settings: Readonly<Record<string, string>> | undefined): Settings =>
    new Map(Object.entries(settings ?? {}));
  return {
    records: Object.entries(value.models).map(([id, { verified, failed }]): [string, LoadRecord] => [
      id,
      {
        verified: { ...verified, settings: mapOf(verified.settings) },
        failed: failed ? { ...failed, settings: mapOf(failed.settings) } : null,
      },
    ]),
    contexts: Object.entries(value.contexts).map(([id, context]): [string, RememberedContext] => [
      id,
      { ...context, settings: mapOf(context.settings) },
    ]),
  };
}

function isBook(value: unknown): value is SavedBook {
  const { models, contexts } = isJsonObject(value) ? value : {};
  const hasSettings = (inputs: unknown): boolean => isJsonObject(inputs) && isJsonObject(inputs["settings"]);
  return (
    isJsonObject(models) &&
    Object.values(models).every(
      (model) =>
        isJsonObject(model) && hasSettings(model["verified"]) && hasSettings(model["failed"] ?? model["verified"]),
    ) &&
    isJsonObject(contexts) &&
    Object.values(contexts).every((context) => isJsonObject(context) && isJsonObject(context["limits"]))
  );
}
