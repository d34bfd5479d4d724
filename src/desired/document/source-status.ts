// The state of gateway.yaml: what is wrong in it, and at which line and column.
import { type Document, isMap, isScalar, type LineCounter } from "yaml";
import { clip } from "./bounds.ts";
import { formatPath, type Problem } from "./validate.ts";

export interface SourceProblem {
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** Dotted path of the key, empty for the document itself. */
  readonly path: string;
  readonly message: string;
}

/** The state of gateway.yaml. */
export interface SourceStatus {
  readonly path: string;
  readonly valid: boolean;
  /** Applied, Unread, ParseError, FileMissing, FileUnreadable, StateUnwritable, Conflict */
  readonly reason: string;
  readonly message: string;
  readonly problems: readonly SourceProblem[];
}

export function locate(document: Document, lineCounter: LineCounter, problem: Problem): SourceProblem {
  const offset = offsetOf(document, problem);
  const { line, col } = lineCounter.linePos(offset);
  return { line, column: col, path: clip(formatPath(problem.path)), message: problem.message };
}

function offsetOf(document: Document, { path, atKey }: Problem): number {
  if (atKey === true) {
    const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
    const key = isMap(parent)
      ? parent.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === path.at(-1))?.key
      : undefined;
    if (isScalar(key) && key.range) return key.range[0];
  }
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as { range?: [number, number, number] } | undefined;
    if (node?.range) return node.range[0];
  }
  return document.contents?.range?.[0] ?? 0;
}
