// gateway.yaml's text to a document tree, or to every problem in it with line and column. Reads no file.
import { type CST, type Document, isMap, isScalar, LineCounter, Parser, parseDocument } from "yaml";
import { GatewayError } from "../../core/errors.ts";
import { noneAllowed, type PresetAllow } from "../../core/preset-keys.ts";
import { clip, documentBounds, mostListed, tooLong, tooManyValues } from "./bounds.ts";
import type { DocumentTree } from "./document.ts";
import type { Problem } from "./problem.ts";
import { formatPath } from "./problem.ts";
import { validateDocument } from "./validate.ts";

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
/** Keys, values and list items; the parser compares each key of a map with each other one. */
const mostTokens = 2 * documentBounds.values;

/** As {@link parseSource}. Decoding other encodings as UTF-8 would put U+FFFD into ids and paths, silently. */
export function parseBytes(bytes: Buffer, presetAllow: PresetAllow = noneAllowed): Parsed {
  const text = bytes.toString("utf8");
  // UTF-16 without a mark is UTF-8 with zero bytes.
  if (Buffer.from(text).equals(bytes) && !bytes.includes(0)) return parseSource(text, presetAllow);
  const line = text.split(/[\uFFFD\0]/, 1)[0]?.split("\n").length ?? 1;
  return failed("not UTF-8: save the file as UTF-8", line);
}

/** One problem of the whole text. */
export function failed(message: string, line = 1): Parsed & { ok: false } {
  return { ok: false, problems: [{ line, column: 1, path: "", message: clip(message) }], more: 0 };
}

/** Errors: `invalid_document` with line, column and field of every problem. */
export function requireValid(parsed: Parsed): DocumentTree {
  if (parsed.ok) return parsed.tree;
  const problems = parsed.problems.map(
    ({ line, column, path, message }) => `line ${line}, column ${column}: ${path === "" ? "" : `${path}: `}${message}`,
  );
  if (parsed.more > 0) problems.push(`and ${parsed.more} more`);
  throw new GatewayError("invalid_document", problems.join("; "));
}

const severalDocuments = "more than one document: remove this line and what follows";

export function parseSource(text: string, presetAllow: PresetAllow = noneAllowed): Parsed {
  const lineCounter = new LineCounter();
  if (text.length > documentBounds.bytes) return failed(tooLong);
  const tooDeep = outlineProblem(text);
  if (tooDeep !== null) return failed(tooDeep);
  try {
    const document = parseDocument(text, { lineCounter, prettyErrors: false });
    const { errors } = document;
    if (errors.length > 0) {
      const problems = errors.slice(0, mostListed).map(({ code, message, pos: [offset] }) => {
        const { line, col } = lineCounter.linePos(offset);
        return { line, column: col, path: "", message: code === "MULTIPLE_DOCS" ? severalDocuments : clip(message) };
      });
      return { ok: false, problems, more: errors.length - problems.length };
    }
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    // A file that is being written starts empty: no document, not an empty one.
    if (value === null || value === undefined) return failed("the file is empty");
    const validation = validateDocument(value, presetAllow);
    if (validation.ok) return validation;
    const problems = validation.problems
      .map((problem) => locate(document, lineCounter, problem))
      .sort((one, other) => one.line - other.line || one.column - other.column);
    return { ok: false, problems, more: validation.more };
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
}

/** Without recursion, which it guards against. */
function outlineProblem(text: string): string | null {
  for (const token of new Parser().parse(text)) {
    let level: readonly CST.Token[] = [token];
    let tokens = 0;
    for (let depth = 0; level.length > 0; depth++) {
      if (depth > mostLevels) return `more than ${mostLevels} levels of maps and lists`;
      tokens += level.length;
      if (tokens > mostTokens) return tooManyValues;
      level = level.flatMap((each) => {
        if ("items" in each) return each.items.flatMap(({ key, value }) => [key ?? [], value ?? []].flat());
        return each.type === "document" ? (each.value ?? []) : [];
      });
    }
  }
  return null;
}

/** Problems of a text that parses and is valid, with their places: for what only this machine shows, as a file that is not there. */
export function locateIn(text: string, problems: readonly Problem[]): SourceProblem[] {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  return problems.map((problem) => locate(document, lineCounter, problem));
}

function locate(document: Document, lineCounter: LineCounter, problem: Problem): SourceProblem {
  const offset = offsetOf(document, problem);
  const { line, col } = lineCounter.linePos(offset);
  return { line, column: col, path: clip(formatPath(problem.path)), message: problem.message };
}

export function offsetOf(document: Document, { path, atKey }: Omit<Problem, "message">): number {
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
