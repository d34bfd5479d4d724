// A configuration of llama-swap: its values, the line of each, and its macros.
import { type Document, isMap, LineCounter, type Node, parseDocument } from "yaml";
import { GatewayError, reasonOf } from "../core/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../core/json.ts";

export interface SwapConfig {
  readonly value: JsonObject;
  /** Of a key by its path, or of the nearest one above it that is written there; from 1. */
  lineOf(path: readonly string[]): number;
  /** The first line from that of a key on that has a text; without one, the key's own. */
  lineWith(path: readonly string[], text: string): number;
}

/** Errors: `invalid_document`, with its place. */
export function parseSwapConfig(name: string, text: string): SwapConfig {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, merge: true });
  const [error] = document.errors;
  if (error) {
    const { line, col } = lines.linePos(error.pos[0]);
    throw new GatewayError("invalid_document", `${name}:${line}:${col}: ${error.message.split("\n")[0]}`);
  }
  const value = valueOf(name, document);
  if (!isJsonObject(value) || !isJsonObject(value["models"]))
    throw new GatewayError("invalid_document", `${name} is no configuration of llama-swap: it has no \`models\``);
  const texts = text.split("\n");

  function lineOf(path: readonly string[]): number {
    let node: unknown = document.contents;
    let start = 0;
    for (const key of path) {
      const pair = isMap(node) ? node.items.find((item) => String(item.key) === key) : undefined;
      if (!pair) break;
      start = (pair.key as Node).range?.[0] ?? start;
      node = pair.value;
    }
    return lines.linePos(start).line;
  }

  return {
    value,
    lineOf,
    lineWith: (path, wanted) => {
      const first = lineOf(path);
      const end = endOfKey(texts, first);
      const found = texts.slice(first - 1, end).findIndex((line) => wordsOf(line).includes(wanted));
      return found < 0 ? first : first + found;
    },
  };
}

/** Errors: `invalid_document` for aliases that would multiply a text. */
function valueOf(name: string, document: Document): unknown {
  try {
    return document.toJS() as unknown;
  } catch (error) {
    throw new GatewayError("invalid_document", `${name} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}

/** The line of the next key that is not indented further. */
function endOfKey(texts: readonly string[], first: number): number {
  const indent = indentOf(texts[first - 1] ?? "");
  const length = texts.slice(first).findIndex((line) => line.trim() !== "" && indentOf(line) <= indent);
  return length < 0 ? texts.length : first + length;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function wordsOf(line: string): string[] {
  return line.trim().startsWith("#") ? [] : line.split(/[\s"']+/);
}

/** Of a list or a map: nothing. */
export function textOf(value: Json | undefined): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

/** A value with its macros replaced, those in keys too; the names of macros that are not defined go to `unknown`. */
export function expanded(
  value: Json,
  macros: ReadonlyMap<string, Json>,
  environment: Readonly<Record<string, string | undefined>>,
  unknown: Set<string>,
): Json {
  const inText = (text: string, depth = 0): string =>
    text.replaceAll(/\$\{(env\.)?([\w-]+)\}/g, (whole, env: string | undefined, name: string) => {
      const found = env === undefined ? macros.get(name) : environment[name];
      // A macro that contains itself has no value.
      if (found !== undefined && depth < 20) return inText(textOf(found), depth + 1);
      unknown.add(`${env ?? ""}${name}`);
      return whole;
    });
  if (typeof value === "string") {
    const whole = /^\$\{([\w-]+)\}$/.exec(value)?.[1];
    const macro = whole === undefined ? undefined : macros.get(whole);
    return macro !== undefined && typeof macro !== "string" ? macro : inText(value);
  }
  if (Array.isArray(value)) return value.map((item) => expanded(item as Json, macros, environment, unknown));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [inText(key), expanded(item, macros, environment, unknown)]),
  );
}
