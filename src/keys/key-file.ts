// license-keys.json on disk: where it is, and how it is read. key-changes.ts writes it.
import { hash } from "node:crypto";
import { lstatSync, readFileSync } from "node:fs";
import { GatewayError, systemCode } from "../core/errors.ts";
import { type KeyEntry, parseKeyList } from "./key-list.ts";

/** In the state folder. */
export const keyFileName = "license-keys.json";
/** Of the lock under which it is changed. */
export const keyLockName = "license-keys.lock";

/** For its owner alone: write access to it grants any access. */
export const keyFileMode = 0o600;

/** No salt and no slow hash: of 256 random bits none is guessed. */
export function hashOf(key: string): string {
  return hash("sha256", key);
}

/** null: no file. Errors: `invalid_request` for one that cannot be read. */
export function readKeyText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const why = systemCode(error) ?? String(error);
    // A dangling link is not a missing file: keys were intended, and without them every client would be let in.
    if (why === "ENOENT" && !lstatSync(path, { throwIfNoEntry: false })) return null;
    throw new GatewayError("invalid_request", `the license keys in ${path} cannot be read (${why})`, { cause: error });
  }
}

/** Errors: `invalid_request` for a text that cannot be understood. */
export function keysIn(text: string, path: string): readonly KeyEntry[] {
  const parsed = parseKeyList(text);
  if (typeof parsed !== "string") return parsed;
  throw new GatewayError(
    "invalid_request",
    `the license keys in ${path} cannot be understood: ${parsed}; correct the file, or delete it and make new keys`,
  );
}

/** The keys in the file; none where there is no file. Errors: `invalid_request` for one that cannot be read or understood. */
export function listKeys(path: string): readonly KeyEntry[] {
  const text = readKeyText(path);
  return text === null ? [] : keysIn(text, path);
}
