// The line of a field in a gateway.yaml. Pure.
import { isSeq, LineCounter, parseDocument } from "yaml";
import { idOf } from "./edit-text.ts";
import { offsetOf } from "./parse.ts";

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
