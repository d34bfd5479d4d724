// Reads history.json. What it holds is checked like any input: a person may have edited it.
import { isJsonObject } from "../../core/json.ts";
import type { Drift, DriftItem, FieldChange, History, HistoryEntry, Outcome } from "./entries.ts";

/** Null where its head cannot be read: without that no document before it is known. */
export function readHistory(value: unknown): History | null {
  const { head, base, entries, drifts } = isJsonObject(value) ? value : {};
  if (!isJsonObject(head) || !isJsonObject(head["tree"]) || !isCount(head["generation"])) return null;
  const all: readonly unknown[] = Array.isArray(entries) ? entries : [];
  // What lies before a damaged entry cannot be worked out from it.
  const damaged = all.findLastIndex((entry) => !isEntry(entry));
  const kept = all.slice(damaged + 1) as readonly HistoryEntry[];
  const oldest = kept[0]?.generation ?? head["generation"] + 1;
  return {
    head: { generation: head["generation"], tree: head["tree"] },
    base: damaged < 0 && isCount(base) ? base : oldest - 1,
    entries: kept,
    drifts: Array.isArray(drifts) ? (drifts as readonly unknown[]).filter(isDrift) : [],
  };
}

const outcomes: readonly unknown[] = ["pending", "converged", "stuck", "superseded"] satisfies readonly Outcome[];

function isEntry(value: unknown): value is HistoryEntry {
  if (!isJsonObject(value)) return false;
  const { generation, at, by, key, peer, client, file, removal, changes, outcome, ms, problem } = value;
  const { sha256, revision } = isJsonObject(file) ? file : { sha256: null, revision: null };
  const texts = [key, peer, client, removal, problem, sha256, revision];
  return (
    [at, by].every(isText) &&
    texts.every((text) => text === null || isText(text)) &&
    isCount(generation) &&
    (ms === null || isCount(ms)) &&
    outcomes.includes(outcome) &&
    isListOf(changes, isChange)
  );
}

function isChange(value: unknown): value is FieldChange {
  return isJsonObject(value) && isListOf(value["path"], isText);
}

function isDrift(value: unknown): value is Drift {
  if (!isJsonObject(value)) return false;
  const { at, generation, what, mendedAt } = value;
  return isText(at) && isCount(generation) && (mendedAt === null || isText(mendedAt)) && isListOf(what, isItem);
}

function isItem(value: unknown): value is DriftItem {
  return isJsonObject(value) && [value["kind"], value["key"], value["reason"], value["message"]].every(isText);
}

function isListOf<T>(value: unknown, isOne: (item: unknown) => item is T): value is readonly T[] {
  return Array.isArray(value) && value.every(isOne);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
