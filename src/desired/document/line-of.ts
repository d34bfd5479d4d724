// The line of a field in a gateway.yaml. Pure.
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";

/** Of the field, else of what is around it in the file (not whole); null: none of it is there, or the text is none. From 1. */
export function lineOf(
  text: string,
  path: readonly string[],
): { readonly line: number; readonly isWhole: boolean } | null {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter });
  let node: Node | null = document.contents;
  let found: number | null = null;
  for (const [depth, key] of path.entries()) {
    const next = isSeq(node) && depth === 1 ? modelIn(node.items, key) : pairIn(node, key);
    if (!next) return found === null ? null : { line: found, isWhole: false };
    found = lineCounter.linePos(next.start).line;
    node = next.value;
  }
  return found === null ? null : { line: found, isWhole: true };
}

interface Place {
  readonly start: number;
  readonly value: Node | null;
}

function pairIn(node: Node | null, key: string): Place | null {
  const pair = isMap(node)
    ? node.items.find((each) => isScalar(each.key) && String(each.key.value) === key)
    : undefined;
  if (!pair || !isScalar(pair.key)) return null;
  return { start: pair.key.range?.[0] ?? 0, value: pair.value as Node | null };
}

function modelIn(items: readonly unknown[], id: string): Place | null {
  for (const item of items as readonly Node[]) {
    const name: unknown = isScalar(item) ? item.value : isMap(item) ? item.get("id") : undefined;
    if (name === id) return { start: item.range?.[0] ?? 0, value: item };
  }
  return null;
}
