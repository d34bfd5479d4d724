// What a history must not keep: a secret that a person has taken out of the document would stay in it. Pure.
import { isJsonObject, type Json } from "../../core/json.ts";
import type { Change } from "../../core/merge-patch.ts";
import type { DocumentTree } from "../document/document.ts";

/** One field, or a part of the document that came or went as a whole. Absent: it was or is not there. */
export type FieldChange = Pick<Change, "path"> & Partial<Change>;

/** In place of a secret. */
export const redacted = "(redacted)";

/** Of options, as `--preset-allow` may add some whose value is one. */
const secretName = /(?:^|[-_.])(?:key|token|secret|password|passwd|credential|auth)s?(?:$|[-_.])/i;

/** License keys, also in an address, tokens of the hub, and what stands before the `@` of an address. */
const secretValue = /\bmgw_[\w-]{16,}|\bhf_[A-Za-z0-9]{16,}|(?<=:\/\/)[^/\s@]+(?=@)|(?<=\/k\/)[^/\s?#]+/g;

export function redactText(text: string): string {
  return text.replace(secretValue, redacted);
}

export function redactTree(tree: DocumentTree): DocumentTree {
  return redact(tree, "");
}

function redact<T extends Json | undefined>(value: T, name: string): T;
function redact(value: Json | undefined, name: string): Json | undefined {
  if (Array.isArray(value)) return value.map((item) => redact(item as Json, name));
  if (isJsonObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redact(inner, key)]));
  if (typeof value !== "string") return value;
  // `image-max-tokens: "512"` is a number of tokens.
  return secretName.test(name) && !/^-?[\d.]+$/.test(value) ? redacted : redactText(value);
}

export function redactChange({ path, before, after }: Change): Change {
  const name = path.at(-1) ?? "";
  return { path, before: redact(before, name), after: redact(after, name) };
}
