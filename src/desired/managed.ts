// The error of a call that would change what only gateway.yaml changes: with the field, and its line in the file.
import { isSeq, LineCounter, parseDocument } from "yaml";
import { GatewayError } from "../core/errors.ts";
import { readIfPresent } from "../state/atomic-file.ts";
import { idOf } from "./document/edit-text.ts";
import { offsetOf } from "./document/parse.ts";
import { formatPath } from "./document/problem.ts";

export function managedBy(configPath: string): (path: readonly string[]) => Promise<GatewayError> {
  return async (path) => {
    const text = await readIfPresent(configPath).catch(() => null);
    const found = text === null ? null : lineOf(text, path);
    const where = found === null ? configPath : `${configPath}:${found.line}`;
    const how = found?.isWhole === true ? "is set in" : "is left to";
    const field = formatPath(path);
    return new GatewayError("file_managed", `${field} ${how} ${where}, and only the file changes the document`, {
      param: field,
    });
  };
}

/** Of the field, else of what is around it in the file (not whole); null: none of it is there, or the text is none. From 1. */
export function lineOf(
  text: string,
  path: readonly string[],
): { readonly line: number; readonly isWhole: boolean } | null {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter });
  const [part, id, ...rest] = path;
  const list = document.get(part, true);
  // Models are a list there.
  const place =
    isSeq(list) && id !== undefined ? [part, list.items.findIndex((item) => idOf(item) === id), ...rest] : path;
  for (let { length } = place; length > 0; length--) {
    const around = place.slice(0, length) as (string | number)[];
    if (!document.hasIn(around)) continue;
    const { line } = lineCounter.linePos(offsetOf(document, { path: around, atKey: true }));
    return { line, isWhole: length === place.length };
  }
  return null;
}
