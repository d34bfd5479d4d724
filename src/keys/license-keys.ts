// The license keys of a running gateway: which there are, and what each may do. What cannot be read or understood while it
// runs leaves the keys as they were: it must never open the door.
import { timingSafeEqual } from "node:crypto";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { hashOf, lookAtKeyFile, narrowKeyFile, readKeyFile } from "./key-file.ts";
import { isLive, type KeyEntry, type KeyScope } from "./key-list.ts";

export interface LicenseKeys {
  /** There is a file of keys, or a single key. An empty file counts: one whose last key was taken out opened the gateway. */
  areRequired(): boolean;
  /** No key is configured. */
  areNone(): boolean;
  /** null: unknown, revoked or expired. A new key is valid at once, a revoked one for at most {@link lookEveryMs} more. */
  scopeOf(key: string): KeyScope | null;
}

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

/**
 * A file changed twice within the grain of its time stamps looks the same after the second change: while it is this young
 * (ms) it is read each time.
 */
const young = 1_000;

/** Errors: `invalid_request` for a file that cannot be read or understood, and for a single key that no client can send. */
export function openLicenseKeys({ path, single, createCommand, now, warn }: LicenseKeysOptions): LicenseKeys {
  if (single !== undefined) checkSingle(single, createCommand, warn);
  const singleDigest = single === undefined ? null : Buffer.from(hashOf(single), "hex");
  /** By their hash: what the time of a look-up shows of a SHA-256 leads to no key. */
  let known: ReadonlyMap<string, KeyEntry> = new Map();
  /** Keys that were found, as they are presented: a hash for each request is a fiftieth of its cost. */
  const found = new Map<string, KeyEntry>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  /** Of the file as it was last understood. null: there was none yet. */
  let stamp: string | null = null;
  let trouble: string | null = null;

  function load(): void {
    const look = lookAtKeyFile(path);
    if (look === null) {
      if (stamp !== null) throw new GatewayError("invalid_request", `the license keys in ${path} are gone`);
      return;
    }
    if (look.stamp === stamp && Math.abs(now() - look.changedAt) > young) return;
    found.clear();
    known = new Map(readKeyFile(path).map((entry) => [entry.hash, entry]));
    // The stamp of the moment before: what changes the file after it was read shows at the next look.
    if (look.stamp !== stamp) {
      seeToMode();
      if (areNone()) warn(`there is no license key, so requests are refused: \`${createCommand}\` makes one`, { path });
    }
    stamp = look.stamp;
  }

  function seeToMode(): void {
    const mode = narrowKeyFile(path);
    if (mode === "narrowed") warn("others could read or write the license keys; now only their owner can", { path });
    if (mode === "open") warn("others can read or write the license keys: make the file its owner's alone", { path });
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

  const areNone = (): boolean => known.size === 0 && singleDigest === null;

  load();

  return {
    areNone() {
      refresh();
      return areNone();
    },
    areRequired() {
      refresh();
      // A file that appears and cannot be understood is a file of keys too.
      return stamp !== null || trouble !== null || singleDigest !== null;
    },
    scopeOf(key) {
      refresh();
      let entry = found.get(key);
      if (entry) return isLive(entry, now()) ? (entry.scope ?? "all") : null;
      const hash = hashOf(key);
      if (singleDigest !== null && timingSafeEqual(Buffer.from(hash, "hex"), singleDigest)) return "all";
      // A key that was just created is valid at once.
      if (!known.has(hash)) refresh(true);
      entry = known.get(hash);
      if (!entry) return null;
      found.set(key, entry);
      return isLive(entry, now()) ? (entry.scope ?? "all") : null;
    },
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
