// What the history holds, and what an edit, an outcome or drift makes of it. Pure.
import type { HistoryBody } from "../../../schemas/history.ts";
import { type Frozen, isJsonObject } from "../../core/json.ts";
import { type Change, listChanges, setAt } from "../../core/merge-patch.ts";
import { redactValue } from "../../core/redact.ts";
import type { DocumentTree } from "../document/document.ts";

/** One field, or a part of the document that came or went as a whole. Absent: it was or is not there. */
export type FieldChange = Pick<Change, "path"> & Partial<Change>;

/** One more field than its body has: what it changed. */
export type HistoryEntry = Omit<Frozen<HistoryBody>["entries"][number], "fields"> & {
  readonly changes: readonly FieldChange[];
};

/** `superseded`: another generation came before it was in force. */
export type Outcome = HistoryEntry["outcome"];

/** What was changed outside the document, and put back. */
export type Drift = Frozen<HistoryBody>["drifts"][number];

/** The action that mends it. */
export type DriftItem = Drift["what"][number];

export interface History {
  /** The document of the newest entry; without an entry, the one it began with. */
  readonly head: { readonly generation: number; readonly tree: DocumentTree };
  /** The generation before the oldest entry. */
  readonly base: number;
  /** The oldest first. */
  readonly entries: readonly HistoryEntry[];
  readonly drifts: readonly Drift[];
}

/** Of generations, and of drifts. */
export const mostKept = 100;
/** Of the entries together: a document of 256 KiB that is replaced again and again would take 50 MB. */
export const mostBytes = 2 * 1024 * 1024;

export type Edit = Omit<HistoryEntry, "changes" | "outcome" | "ms" | "problem">;

export function withEdit(history: History, edit: Edit, tree: DocumentTree, from: DocumentTree): History {
  return added(history, edit, redactTree(tree), listChanges(from, tree).map(redactChange));
}

/** With what was not recorded: the process ended in between, or desired.json was put back, or lost. */
export function caughtUp(history: History, generation: number, tree: DocumentTree, at: string): History {
  if (history.head.generation === generation) return history;
  const shown = redactTree(tree);
  const changes = listChanges(history.head.tree, shown);
  const edit = { generation, at, by: "unknown", key: null, peer: null, client: null, file: null, removal: null };
  return added(history, edit, shown, changes);
}

function added(history: History, edit: Edit, tree: DocumentTree, changes: readonly FieldChange[]): History {
  const entry: HistoryEntry = { ...edit, changes, outcome: "pending", ms: null, problem: null };
  const entries = history.entries.map((before) =>
    before.outcome === "pending" ? superseded(before, edit.at) : before,
  );
  return bounded({ ...history, head: { generation: edit.generation, tree }, entries: [...entries, entry] });
}

function superseded(entry: HistoryEntry, at: string): HistoryEntry {
  return { ...entry, outcome: "superseded", ms: between(entry.at, at) };
}

function bounded(history: History): History {
  const { entries } = history;
  let bytes = 0;
  let kept = 0;
  // From the newest, which stays whatever its size is.
  for (const entry of entries.toReversed()) {
    bytes += JSON.stringify(entry).length;
    if (kept === mostKept || (kept > 0 && bytes > mostBytes)) break;
    kept++;
  }
  if (kept === entries.length) return history;
  const dropped = entries.slice(0, entries.length - kept);
  return { ...history, base: dropped.at(-1)?.generation ?? history.base, entries: entries.slice(-kept) };
}

/** The outcome of the newest generation so far; once it has converged, what follows is drift. */
export function withOutcome(
  history: History,
  generation: number,
  { outcome, problem }: Pick<HistoryEntry, "outcome" | "problem">,
  at: string,
): History {
  const last = history.entries.at(-1);
  if (last?.generation !== generation || last.outcome === "converged") return history;
  if (last.outcome === outcome && last.problem === problem) return history;
  // Stuck since then, whatever else there is to say of it by now.
  const ms = outcome === "pending" ? null : last.outcome === outcome ? last.ms : between(last.at, at);
  return { ...history, entries: [...history.entries.slice(0, -1), { ...last, outcome, problem, ms }] };
}

export function withDrift(history: History, generation: number, what: readonly DriftItem[], at: string): History {
  const open = history.drifts.at(-1);
  if (open?.mendedAt !== null || open.generation !== generation) {
    const drift = { at, generation, what: what.slice(0, mostItems), mendedAt: null };
    return { ...history, drifts: [...history.drifts, drift].slice(-mostKept) };
  }
  const fresh = what.filter(({ kind, key }) => !open.what.some((item) => item.kind === kind && item.key === key));
  const room = mostItems - open.what.length;
  if (fresh.length === 0 || room <= 0) return history;
  const more = { ...open, what: [...open.what, ...fresh.slice(0, room)] };
  return { ...history, drifts: [...history.drifts.slice(0, -1), more] };
}

/** Of one drift: a cache of hundreds of models that is deleted by hand. */
const mostItems = 20;

export function withDriftMended(history: History, at: string): History {
  const open = history.drifts.at(-1);
  if (open?.mendedAt !== null) return history;
  return { ...history, drifts: [...history.drifts.slice(0, -1), { ...open, mendedAt: at }] };
}

/** The document of a generation, secrets redacted; null: it is not kept. */
export function treeOf({ head, base, entries }: History, generation: number): DocumentTree | null {
  let { tree } = head;
  for (let index = entries.length - 1; index >= 0; index--) {
    const entry = entries[index] as HistoryEntry;
    if (entry.generation === generation) return tree;
    tree = reverted(tree, entry.changes);
  }
  return generation === base ? tree : null;
}

function reverted(tree: DocumentTree, changes: readonly FieldChange[]): DocumentTree {
  return changes.reduceRight((after, { path, before }) => setAt(after, path, before), tree);
}

/** Each field of a part that came or went as a whole. */
export function fieldsOf(change: FieldChange): readonly FieldChange[] {
  const whole = change.after ?? change.before;
  const isOneSided = change.before === undefined || change.after === undefined;
  if (!isOneSided || !isJsonObject(whole) || Object.keys(whole).length === 0) return [change];
  const side = change.after === undefined ? "before" : "after";
  return Object.entries(whole).flatMap(([key, value]) => fieldsOf({ path: [...change.path, key], [side]: value }));
}

function between(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from));
}

/** Without secrets: one that a person has taken out of the document would stay in the history. */
export function redactTree(tree: DocumentTree): DocumentTree {
  return redactValue(tree, "");
}

export function redactChange({ path, before, after }: Change): Change {
  const name = path.at(-1) ?? "";
  return { path, before: redactValue(before, name), after: redactValue(after, name) };
}
