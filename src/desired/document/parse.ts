// gateway.yaml's text to a document tree, or to every problem in it with line and column. Reads no file.
import { type CST, type Document, isAlias, isMap, isScalar, LineCounter, Parser, parseDocument, visit } from "yaml";
import { noneAllowed, type PresetAllow } from "../../core/preset-keys.ts";
import { clip, documentBounds, mostTold, tooLong } from "./bounds.ts";
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

/** The state of gateway.yaml. */
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
  | {
      readonly ok: false;
      readonly problems: readonly SourceProblem[];
      /** Problems beyond those. */
      readonly more: number;
    };

/** Nesting of maps and lists. A document has five levels; `{` 100,000 times ended the process in the parser's recursion. */
const mostLevels = 50;
/** Comparisons of keys, each of a map with each other: 2,000 keys. */
const mostComparisons = 2_000_000;

export function parseSource(text: string, presetAllow: PresetAllow = noneAllowed): Parsed {
  const lineCounter = new LineCounter();
  const failed = (message: string, offset = 0): Parsed => {
    const { line, col } = lineCounter.linePos(offset);
    return { ok: false, problems: [{ line: line || 1, column: col || 1, path: "", message: clip(message) }], more: 0 };
  };
  if (text.length > documentBounds.bytes) return failed(tooLong);
  let comparisons = 0;
  let document: Document | undefined;
  try {
    for (const token of new Parser().parse(text))
      if (isDeeper(token, mostLevels)) return failed(`more than ${mostLevels} levels of maps and lists`);
    document = parseDocument(text, {
      lineCounter,
      prettyErrors: false,
      uniqueKeys: (a, b) => {
        if (++comparisons > mostComparisons) throw new Error("a map has too many keys");
        return a === b || (isScalar(a) && isScalar(b) && a.value === b.value);
      },
    });
    const { errors } = document;
    if (errors.length > 0) {
      const told = errors.slice(0, mostTold).map(({ message, pos: [offset] }) => {
        const { line, col } = lineCounter.linePos(offset);
        return { line, column: col, path: "", message: clip(message) };
      });
      return { ok: false, problems: told, more: errors.length - told.length };
    }
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    // A file that is being written starts empty: no document, not an empty one.
    if (value === null || value === undefined) return failed("the file is empty");
    const validation = validateDocument(value, presetAllow);
    if (validation.ok) return validation;
    const parsed = document;
    const problems = validation.problems.map((problem) => locate(parsed, lineCounter, problem));
    return { ok: false, problems, more: validation.more };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return failed(message, (document && undefinedAlias(document)) ?? 0);
  }
}

/** Without recursion, which it guards against. */
function isDeeper(token: CST.Token, most: number): boolean {
  let level: readonly CST.Token[] = [token];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > most) return true;
    level = level.flatMap((each) => {
      if ("items" in each) return each.items.flatMap(({ key, value }) => [key ?? [], value ?? []].flat());
      return each.type === "document" ? (each.value ?? []) : [];
    });
  }
  return false;
}

/** The offset of the first alias without an anchor before it; null if there is none. */
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

/** `models[2].preset.flash-attn` */
export function formatPath(path: readonly (string | number)[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`))
    .join("")
    .replace(/^\./, "");
}
