// gateway.yaml's text to a document tree, or to every problem in it with line and column. Reads no file.
import { type Document, isAlias, isMap, isScalar, LineCounter, parseDocument, visit } from "yaml";
import { noneAllowed, type PresetAllow } from "../core/preset-keys.ts";
import type { DocumentTree } from "./document.ts";
import { type Problem, validateDocument } from "./validate.ts";

export interface SourceProblem {
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** Dotted path of the key, empty for the document itself. */
  readonly path: string;
  readonly message: string;
}

/** How gateway.yaml stands. */
export interface SourceStatus {
  readonly path: string;
  readonly valid: boolean;
  /** Applied, Unread, ParseError, FileMissing, FileUnreadable, StateUnwritable, Conflict */
  readonly reason: string;
  readonly message: string;
  readonly problems: readonly SourceProblem[];
}

export type Parsed =
  | { readonly ok: true; readonly tree: DocumentTree }
  | { readonly ok: false; readonly problems: readonly SourceProblem[] };

export function parseSource(text: string, presetAllow: PresetAllow = noneAllowed): Parsed {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  if (document.errors.length > 0) {
    return {
      ok: false,
      problems: document.errors.map((error) => {
        const { line, col } = lineCounter.linePos(error.pos[0]);
        return { line, column: col, path: "", message: error.message };
      }),
    };
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    const { line, col } = lineCounter.linePos(undefinedAlias(document) ?? 0);
    const message = error instanceof Error ? error.message : String(error);
    return { ok: false, problems: [{ line, column: col, path: "", message }] };
  }
  // A file that is being written starts empty: no document, rather than one that wants nothing.
  if (value === null || value === undefined) {
    return { ok: false, problems: [{ line: 1, column: 1, path: "", message: "the file is empty" }] };
  }
  const validation = validateDocument(value, presetAllow);
  if (validation.ok) return validation;
  return { ok: false, problems: validation.problems.map((problem) => locate(document, lineCounter, problem)) };
}

/** Where the first alias stands that has no anchor before it; null where each has one. */
function undefinedAlias(document: Document): number | null {
  let offset: number | null = null;
  // Not by the alias's own `resolve`, which reads the document from its start for each.
  const anchors = new Set<string>();
  visit(document, {
    Node: (_key, node) => {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.add(node.anchor);
        return undefined;
      }
      if (anchors.has(node.source)) return undefined;
      offset = node.range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return offset;
}

function locate(document: Document, lineCounter: LineCounter, problem: Problem): SourceProblem {
  const offset = offsetOf(document, problem);
  const { line, col } = lineCounter.linePos(offset);
  return { line, column: col, path: formatPath(problem.path), message: problem.message };
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

/** `models[2].preset.flash-attn` */
export function formatPath(path: readonly (string | number)[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`))
    .join("")
    .replace(/^\./, "");
}
