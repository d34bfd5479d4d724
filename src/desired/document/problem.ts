// A problem of a document, its place, and how parts of unknown shape are read. Pure.
import { isJsonObject } from "../../core/json.ts";

export interface Problem {
  /** Keys and indexes from the root. */
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** The unknown key itself is at fault, not its value. */
  readonly atKey?: boolean;
}

/** With the keys that may stand in its place: they are compared with it only if the problem is listed. */
export interface Found extends Problem {
  readonly known?: readonly string[];
}

/** Empty where it is no list. */
export function listIn(value: unknown, key: string): readonly unknown[] {
  const list = isJsonObject(value) ? value[key] : undefined;
  return Array.isArray(list) ? list : [];
}

/** `models[2].preset.flash-attn` */
export function formatPath(path: readonly (string | number)[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`))
    .join("")
    .replace(/^\./, "");
}
