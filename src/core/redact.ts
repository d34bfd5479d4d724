// What is shown or kept in place of a secret that a person has put into a document, an address or a text. Pure.
import { isJsonObject, type Json } from "./json.ts";

/** In place of a secret. */
export const redacted = "(redacted)";

/** Of options, as `--preset-allow` may add some whose value is one. */
const secretName = /(?:^|[-_.])(?:key|token|secret|password|passwd|credential|auth)s?(?:$|[-_.])/i;

/** License keys, also in an address, tokens of the hub, and what stands before the `@` of an address. */
const secretValue = /\bmgw_[\w-]{16,}|\bhf_[A-Za-z0-9]{16,}|(?<=:\/\/)[^/\s@]+(?=@)|(?<=\/k\/)[^/\s?#]+/g;

export function redactText(text: string): string {
  return text.replace(secretValue, redacted);
}

/** The value of a field or an option of this name. */
export function redactValue<T extends Json | undefined>(value: T, name: string): T;
export function redactValue(value: Json | undefined, name: string): Json | undefined {
  if (Array.isArray(value)) return value.map((item) => redactValue(item as Json, name));
  if (isJsonObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redactValue(inner, key)]));
  if (value === undefined) return value;
  if (isSecret(name, JSON.stringify(value))) return redacted;
  return typeof value === "string" ? redactText(value) : value;
}

export function redactOption(name: string, value: string): string {
  return isSecret(name, value) ? redacted : redactText(value);
}

/** `image-max-tokens: 512` is a number of tokens. */
function isSecret(name: string, value: string): boolean {
  return secretName.test(name) && !(/tokens$/i.test(name) && /^"?-?[\d.]+"?$/.test(value));
}
