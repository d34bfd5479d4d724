// Changes of license-keys.json: a key is added or removed, and the file written whole. Only under the file's lock.
import { randomBytes } from "node:crypto";
import { GatewayError } from "../core/errors.ts";
import { stateError, writeAtomic } from "../state/atomic-file.ts";
import { hashOf, keyFileMode, listKeys } from "./key-file.ts";
import { isKeyName, isLive, type KeyEntry, type KeyScope, renderKeyList } from "./key-list.ts";

/** A new key: 256 random bits, and a prefix by which a person or a scanner of leaks recognizes it. */
export function makeKey(): string {
  return `mgw_${randomBytes(32).toString("base64url")}`;
}

/** Errors: `invalid_request` for a name that is none or is taken, and as listKeys. */
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

/** Answers with the keys that are left. Errors: `invalid_request` for an unknown name. */
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
    await writeAtomic(path, renderKeyList(keys), { mode: keyFileMode });
  } catch (error) {
    throw stateError(path, error);
  }
}
