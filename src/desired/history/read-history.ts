// Reads history.json. What it holds is checked like any input: a person may have edited it.
import { isJsonObject, type Json } from "../../core/json.ts";
import type { Drift, DriftItem, History, HistoryEntry, Outcome } from "./entries.ts";
import type { FieldChange } from "./redact.ts";

/** Null where its head cannot be read: without that no document before it is known. */
export function readHistory(value: unknown): History | null {
  const { head, base, entries, drifts } = isJsonObject(value) ? value : {};
  if (!isJsonObject(head) || !isJsonObject(head["tree"]) || !isCount(head["generation"])) return null;
  const read = Array.isArray(entries) ? (entries as readonly unknown[]).map(readEntry) : [];
  // What lies before a damaged entry cannot be worked out from it.
  const damaged = read.lastIndexOf(null);
  const kept = read.slice(damaged + 1) as readonly HistoryEntry[];
  const oldest = kept[0]?.generation ?? head["generation"] + 1;
  return {
    head: { generation: head["generation"], tree: head["tree"] },
    base: damaged < 0 && isCount(base) ? base : oldest - 1,
    entries: kept,
    drifts: Array.isArray(drifts) ? (drifts as readonly unknown[]).flatMap((drift) => readDrift(drift) ?? []) : [],
  };
}

const outcomes: readonly unknown[] = ["pending", "converged", "stuck", "superseded"] satisfies readonly Outcome[];

function readEntry(value: unknown): HistoryEntry | null {
  if (!isJsonObject(value)) return null;
  const { generation, at, by, key, peer, client, file, removal, changes, outcome, ms, problem } = value;
  if (!isCount(generation) || !isText(at) || !isText(by) || !Array.isArray(changes) || !outcomes.includes(outcome))
    return null;
  const fields = (changes as readonly unknown[]).map(readChange);
  if (fields.includes(null)) return null;
  return {
    generation,
    at,
    by,
    key: textOr(key),
    peer: textOr(peer),
    client: textOr(client),
    file: isJsonObject(file) ? { sha256: textOr(file["sha256"]), revision: textOr(file["revision"]) } : null,
    removal: textOr(removal),
    changes: fields as readonly FieldChange[],
    outcome: outcome as Outcome,
    ms: typeof ms === "number" ? ms : null,
    problem: textOr(problem),
  };
}

function readChange(value: unknown): FieldChange | null {
  if (!isJsonObject(value)) return null;
  const { path, before, after } = value;
  if (!Array.isArray(path) || !path.every(isText)) return null;
  return {
    path,
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
  };
}

function readDrift(value: unknown): Drift | null {
  if (!isJsonObject(value)) return null;
  const { at, generation, what, mendedAt } = value;
  if (!isText(at) || !isCount(generation) || !Array.isArray(what)) return null;
  return { at, generation, what: (what as readonly unknown[]).filter(isItem), mendedAt: textOr(mendedAt) };
}

function isItem(value: unknown): value is DriftItem {
  return isJsonObject(value) && [value["kind"], value["key"], value["reason"], value["message"]].every(isText);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function textOr(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}
