// license-keys.json on disk: changed by one process at a time, written whole.
import { hash, randomBytes } from "node:crypto";
import { lstatSync, readFileSync } from "node:fs";
import { GatewayError, systemCode } from "../core/errors.ts";
import { stateError, writeAtomic } from "../state/atomic-file.ts";
import { isKeyName, isLive, type KeyEntry, type KeyScope, parseKeyList, renderKeyList } from "./key-list.ts";

/** In the state folder. */
export const keyFileName = "license-keys.json";
/** Of the lock under which it is changed. */
export const keyLockName = "license-keys.lock";

/** For its owner alone: write access to it grants any access. */
export const keyFileMode = 0o600;

/** A new key: 256 random bits, and a prefix by which a person or a scanner of leaks recognizes it. */
export function makeKey(): string {
  return `mgw_${randomBytes(32).toString("base64url")}`;
}

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

/** Only under the file's lock. Errors: `invalid_request` for a name that is none or is taken, and as listKeys. */
export async function addKey(
  path: string,
  options: {
    readonly name: string;
    readonly scope?: KeyScope;
    readonly expiresAt: string | undefined;
    readonly now: number;
  },
): Promise<{ readonly entry: KeyEntry; readonly key: string }> {
  const { name, scope = "all", expiresAt, now } = options;
  if (!isKeyName(name))
    throw new GatewayError(
      "invalid_request",
      "a key's name begins with a letter or digit and has up to 64 letters, digits and .@_-",
    );
  const keys = listKeys(path);
  const holder = keys.find((entry) => entry.name === name);
  if (holder)
    throw new GatewayError(
      "invalid_request",
      `there is ${isLive(holder, now) ? "a" : "an expired"} key named ${name}: take another name, or revoke it first`,
    );
  const key = makeKey();
  const createdAt = new Date(now).toISOString();
  const entry = { name, hash: hashOf(key), scope, createdAt, ...(expiresAt === undefined ? {} : { expiresAt }) };
  await write(path, [...keys, entry]);
  return { entry, key };
}

/** Answers with the keys that are left. Only under the file's lock. Errors: `invalid_request` for an unknown name. */
export async function removeKey(path: string, name: string): Promise<readonly KeyEntry[]> {
  const keys = listKeys(path);
  const left = keys.filter((entry) => entry.name !== name);
  if (left.length === keys.length) {
    const names = keys.map((entry) => entry.name).join(", ");
    const others = names === "" ? ", nor any other" : `; there are ${names}`;
    throw new GatewayError("invalid_request", `there is no key named ${JSON.stringify(name)}${others}`);
  }
  await write(path, left);
  return left;
}

async function write(path: string, keys: readonly KeyEntry[]): Promise<void> {
  try {
    await writeAtomic(path, renderKeyList(keys), keyFileMode);
  } catch (error) {
    throw stateError(path, error);
  }
}
