// What differs between two documents, as lines for a person: per field; of values with several lines, a unified diff. Pure.
import { commonLines } from "../core/common-lines.ts";
import { isJsonObject, type Json } from "../core/json.ts";
import type { Change } from "../core/merge-patch.ts";
import { formatPath } from "../desired/document/problem.ts";

export interface DiffLine {
  /** Added, removed, changed, as it was. */
  readonly sign: "+" | "-" | "~" | " ";
  readonly text: string;
}

/** Unchanged lines that are shown before and after those that differ. */
const context = 3;

export interface NotedChange extends Pick<Change, "path"> {
  /** undefined or absent: it was or is not there. */
  readonly before?: Change["before"];
  readonly after?: Change["after"];
  /** Beside the field's name. */
  readonly note?: string | undefined;
}

export function fieldDiff(changes: readonly NotedChange[]): DiffLine[] {
  return changes.flatMap(({ note, ...change }) =>
    linesOfChange(change).map((line, index) =>
      index === 0 && note !== undefined ? { ...line, text: `${line.text}  (${note})` } : line,
    ),
  );
}

function linesOfChange({ path, before, after }: NotedChange): DiffLine[] {
  const name = formatPath(path);
  if (before === undefined || after === undefined) {
    const sign = before === undefined ? "+" : "-";
    return valueLines(name, before ?? after ?? null).map((text) => ({ sign, text }));
  }
  if (!hasLines(before) && !hasLines(after))
    return [{ sign: "~", text: `${name}: ${JSON.stringify(before)} → ${JSON.stringify(after)}` }];
  const lines = unifiedDiff(linesOf(before), linesOf(after));
  return [{ sign: "~", text: `${name}:` }, ...lines.map(({ sign, text }) => ({ sign, text: `  ${text}` }))];
}

/** A key with its value; a model with nothing but its id is a key alone. */
function valueLines(key: string, value: Json): string[] {
  if (hasLines(value)) return [`${key}:`, ...linesOf(value).map((line) => `  ${line}`)];
  return [isJsonObject(value) ? key : `${key}: ${JSON.stringify(value)}`];
}

/** Whether it takes several lines. */
function hasLines(value: Json): boolean {
  if (typeof value === "string") return value.includes("\n");
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

function linesOf(value: Json): string[] {
  if (typeof value === "string") return value.split("\n");
  if (isJsonObject(value)) return Object.entries(value).flatMap(([key, member]) => valueLines(key, member));
  if (!Array.isArray(value)) return [JSON.stringify(value)];
  return (value as readonly Json[]).flatMap((item) => {
    const lines = hasLines(item) ? linesOf(item) : [JSON.stringify(item)];
    return lines.map((line, index) => `${index === 0 ? "- " : "  "}${line}`);
  });
}

/** Lines far from a difference are left out. */
function unifiedDiff(before: readonly string[], after: readonly string[]): DiffLine[] {
  const all = alignedLines(before, after);
  const differs = all.map(({ sign }) => sign !== " ");
  const isNear = (index: number): boolean =>
    differs.slice(Math.max(0, index - context), index + context + 1).includes(true);
  return all.flatMap((line, index) => {
    if (isNear(index)) return [line];
    return index === 0 || isNear(index - 1) ? [{ sign: " " as const, text: "…" }] : [];
  });
}

function alignedLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  for (const [old, fresh] of [...(commonLines(before, after) ?? []), [before.length, after.length] as const]) {
    for (; row < old; row++) lines.push({ sign: "-", text: before[row] ?? "" });
    for (; column < fresh; column++) lines.push({ sign: "+", text: after[column] ?? "" });
    if (row < before.length) lines.push({ sign: " ", text: before[row] ?? "" });
    [row, column] = [row + 1, column + 1];
  }
  return lines;
}
