// A problem of a document, and how its parts are read while their shape is not known. Pure.
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
