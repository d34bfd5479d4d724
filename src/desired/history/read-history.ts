// Reads history.json, which a person may have edited.
import { isJsonObject } from "../../core/json.ts";
import type { Drift, FieldChange, History, HistoryEntry } from "./entries.ts";

/** Null where documents before the newest one cannot be worked out from it. */
export function readHistory(value: unknown): History | null {
  const { head, base, entries, drifts } = isJsonObject(value) ? value : {};
  if (!isJsonObject(head) || !isJsonObject(head["tree"]) || !isCount(head["generation"])) return null;
  if (!isCount(base) || !isListOf(entries, isEntry) || !isListOf(drifts, isDrift)) return null;
  return { head: { generation: head["generation"], tree: head["tree"] }, base, entries, drifts };
}

function isEntry(value: unknown): value is HistoryEntry {
  return isJsonObject(value) && isCount(value["generation"]) && isListOf(value["changes"], isChange);
}

function isChange(value: unknown): value is FieldChange {
  return isJsonObject(value) && isListOf(value["path"], (key) => typeof key === "string");
}

function isDrift(value: unknown): value is Drift {
  return isJsonObject(value) && isListOf(value["what"], isJsonObject);
}

function isListOf<T>(value: unknown, isOne: (item: unknown) => item is T): value is readonly T[] {
  return Array.isArray(value) && value.every(isOne);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
