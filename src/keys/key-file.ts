// license-keys.json on disk: permissions checked on read, changed by one process at a time, written whole.
import { hash, randomBytes } from "node:crypto";
import { chmodSync, lstatSync, readFileSync, statSync } from "node:fs";
import { GatewayError, systemCode } from "../core/errors.ts";
import { readIfPresent, stateError, writeAtomic } from "../state/atomic-file.ts";
import { isKeyName, isLive, type KeyEntry, type KeyScope, parseKeyList, renderKeyList } from "./key-list.ts";

/** In the state folder. */
export const keyFileName = "license-keys.json";
/** Of the lock under which it is changed. */
export const keyLockName = "license-keys.lock";

/** For its owner alone: write access to it grants any access. */
const fileMode = 0o600;

/** A new key: 256 random bits, and a prefix by which a person or a scanner of leaks recognizes it. */
export function makeKey(): string {
  return `mgw_${randomBytes(32).toString("base64url")}`;
}

/** No salt and no slow hash: of 256 random bits none is guessed. */
export function hashOf(key: string): string {
  return hash("sha256", key);
}

export interface KeyFileLook {
  /** Differs as soon as the file does. */
  readonly stamp: string;
  /** The newest of its times, ms. */
  readonly changedAt: number;
}

/** A cheap check, for each request. null: no file. Errors: as readKeyFile. */
export function lookAtKeyFile(path: string): KeyFileLook | null {
  try {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    // A dangling link is not a missing file: keys were intended, and without them every client would be let in.
    if (stats === undefined && lstatSync(path, { throwIfNoEntry: false })) throw unreadable(path, "a link to nothing");
    if (stats === undefined) return null;
    const { ino, size, mtimeNs, ctimeNs } = stats;
    return { stamp: `${ino} ${size} ${mtimeNs} ${ctimeNs}`, changedAt: Number(ctimeNs / 1_000_000n) };
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Takes away what others may do with the file: `narrowed`. `open`: they may, and it cannot be changed (another owner, a
 * read-only mount).
 */
export function narrowKeyFile(path: string): "narrow" | "narrowed" | "open" {
  // Windows has no such bits.
  if (process.platform === "win32") return "narrow";
  try {
    if ((statSync(path).mode & 0o077) === 0) return "narrow";
    chmodSync(path, fileMode);
    return "narrowed";
  } catch {
    return "open";
  }
}

/** Errors: `invalid_request` for a file that cannot be read or understood. */
export function readKeyFile(path: string): readonly KeyEntry[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw unreadable(path, error);
  }
  return understood(path, text);
}

function unreadable(path: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const why = systemCode(error) ?? String(error);
  return new GatewayError("invalid_request", `the license keys in ${path} cannot be read (${why})`, { cause: error });
}

function understood(path: string, text: string): readonly KeyEntry[] {
  const parsed = parseKeyList(text);
  if (parsed.ok) return parsed.keys;
  throw new GatewayError(
    "invalid_request",
    `the license keys in ${path} cannot be understood: ${parsed.problem}; correct the file, or delete it and make new keys`,
  );
}

/** The keys in the file; none where there is no file. Errors: as readKeyFile. */
export async function listKeys(path: string): Promise<readonly KeyEntry[]> {
  const text = await readIfPresent(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  return text === null ? [] : understood(path, text);
}

export interface NewKey {
  readonly entry: KeyEntry;
  /** Shown once: it is kept nowhere. */
  readonly key: string;
}

/** Only under the file's lock. Errors: `invalid_request` for a name that is none or is taken, and as readKeyFile. */
export async function addKey(
  path: string,
  options: {
    readonly name: string;
    readonly scope?: KeyScope;
    readonly expiresAt: string | undefined;
    readonly now: number;
  },
): Promise<NewKey> {
  const { name, scope = "all", expiresAt, now } = options;
  if (!isKeyName(name)) {
    throw new GatewayError(
      "invalid_request",
      "a key's name begins with a letter or digit and has up to 64 letters, digits and .@_-",
    );
  }
  const keys = await listKeys(path);
  const holder = keys.find((entry) => entry.name === name);
  if (holder) {
    throw new GatewayError(
      "invalid_request",
      `there is ${isLive(holder, now) ? "a" : "an expired"} key named ${name}: take another name, or revoke it first`,
    );
  }
  const key = makeKey();
  const createdAt = new Date(now).toISOString();
  const entry = { name, hash: hashOf(key), scope, createdAt, ...(expiresAt === undefined ? {} : { expiresAt }) };
  await write(path, [...keys, entry]);
  return { entry, key };
}

/** Answers with the keys that are left. Only under the file's lock. Errors: `invalid_request` for an unknown name. */
export async function removeKey(path: string, name: string): Promise<readonly KeyEntry[]> {
  const keys = await listKeys(path);
  const left = keys.filter((entry) => entry.name !== name);
  if (left.length === keys.length) {
    const names = keys.map((entry) => entry.name).join(", ");
    throw new GatewayError(
      "invalid_request",
      names === ""
        ? `there is no key named ${JSON.stringify(name)}, nor any other`
        : `there is no key named ${JSON.stringify(name)}; there are ${names}`,
    );
  }
  await write(path, left);
  return left;
}

async function write(path: string, keys: readonly KeyEntry[]): Promise<void> {
  try {
    await writeAtomic(path, renderKeyList(keys), fileMode);
  } catch (error) {
    throw stateError(path, error);
  }
}
