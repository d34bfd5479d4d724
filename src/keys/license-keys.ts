// The license keys of a running gateway: which there are, and what each may do. What cannot be read or understood while it
// runs leaves the keys as they were: it must never open the door.
import { timingSafeEqual } from "node:crypto";
import { chmodSync } from "node:fs";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { hashOf, keyFileMode, keyFileReader, keysIn } from "./key-file.ts";
import { isLive, type KeyEntry, type KeyScope } from "./key-list.ts";

export type LicenseKeys = ReturnType<typeof openLicenseKeys>;

export interface LicenseKeysOptions {
  /** STATE/license-keys.json; it need not be there. */
  readonly path: string;
  /** A further key, as it is. */
  readonly single: string | undefined;
  /** What makes a key. */
  readonly createCommand: string;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
}

/** Below it a key can be found by trying. Ours have 47. */
const shortKey = 16;

/** A look at the file for each request was a twentieth of its cost. */
export const lookEveryMs = 100;

/** Errors: `invalid_request` for a file that cannot be read or understood, and for a single key that no client can send. */
export function openLicenseKeys({ path, single, createCommand, now, warn }: LicenseKeysOptions) {
  if (single !== undefined) checkSingle(single, createCommand, warn);
  const singleDigest = single === undefined ? null : Buffer.from(hashOf(single), "hex");
  /** By their hash: what the time of a look-up shows of a SHA-256 leads to no key. */
  let entries: ReadonlyMap<string, KeyEntry> = new Map();
  /** Keys that were found, as clients present them: a hash for each request is a fiftieth of its cost. */
  const presented = new Map<string, KeyEntry>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  /** Of the file as it was last understood. null: there was none yet. */
  let seen: Buffer | null = null;
  let trouble: string | null = null;
  let isOpen = false;

  const look = keyFileReader(path);

  function load(): void {
    const found = look();
    if (found === null) {
      if (seen !== null) throw new GatewayError("invalid_request", `the license keys in ${path} are gone`);
      return;
    }
    const { bytes, mode } = found;
    seeToMode(mode);
    if (seen?.equals(bytes)) return;
    entries = new Map(keysIn(bytes, path).map((entry) => [entry.hash, entry]));
    presented.clear();
    seen = Buffer.from(bytes);
    if (areNone()) warn(`there is no license key, so requests are refused: \`${createCommand}\` makes one`, { path });
  }

  /** Takes away what others may do with the file. Windows has no such bits. */
  function seeToMode(mode: number): void {
    if (process.platform === "win32" || (mode & 0o077) === 0) return;
    try {
      chmodSync(path, keyFileMode);
      warn("others could read or write the license keys; now only their owner can", { path });
    } catch {
      // Another owner, a read-only mount.
      if (!isOpen) warn("others can read or write the license keys: make the file its owner's alone", { path });
      isOpen = true;
    }
  }

  function refresh(atOnce = false): void {
    const time = now();
    // The clock may be set back.
    if (!atOnce && Math.abs(time - lookedAt) < lookEveryMs) return;
    lookedAt = time;
    try {
      load();
      if (trouble !== null) warn("the license keys can be read again", { path });
      trouble = null;
    } catch (error) {
      const { message } = toGatewayError(error);
      if (message !== trouble) warn("the license keys stay as they were last known", { path, problem: message });
      trouble = message;
    }
  }

  const areNone = (): boolean => entries.size === 0 && singleDigest === null;

  load();

  return {
    /** No key is configured. */
    areNone: (): boolean => {
      refresh();
      return areNone();
    },
    /** There is a file of keys, or a single key. An empty file counts: one whose last key was taken out opened the gateway. */
    areRequired: (): boolean => {
      refresh();
      // A file that appears and cannot be understood is a file of keys too.
      return seen !== null || trouble !== null || singleDigest !== null;
    },
    /** null: unknown, revoked or expired. A new key is valid at once, a revoked one for at most {@link lookEveryMs} more. */
    scopeOf: (key: string): KeyScope | null => {
      refresh();
      let entry = presented.get(key);
      if (!entry) {
        const hash = hashOf(key);
        if (singleDigest !== null && timingSafeEqual(Buffer.from(hash, "hex"), singleDigest)) return "all";
        // A key that was just created is valid at once.
        if (!entries.has(hash)) refresh(true);
        entry = entries.get(hash);
        if (!entry) return null;
        presented.set(key, entry);
      }
      return isLive(entry, now()) ? (entry.scope ?? "all") : null;
    },
    /** Of a key that `scopeOf` has found; the single key has that of its variable. */
    nameOf: (key: string): string => presented.get(key)?.name ?? "GATEWAY_LICENSE_KEY",
  };
}

function checkSingle(key: string, createCommand: string, warn: LicenseKeysOptions["warn"]): void {
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new GatewayError("invalid_request", "GATEWAY_LICENSE_KEY must be of ASCII characters without blanks");
  if (key.length < shortKey)
    warn(`GATEWAY_LICENSE_KEY is short and can be guessed: \`${createCommand}\` makes a better one`, {
      leastLength: shortKey,
    });
}
