// What license-keys.json holds and what may stand in it: names, hashes, scopes, times. Pure; keys themselves are never in it.
import { isJsonObject } from "../core/json.ts";

/** `chat`: ask models and read which there are; `all`: change the document, delete models and all else too. */
export const keyScopes = ["all", "chat"] as const;
export type KeyScope = (typeof keyScopes)[number];

export interface KeyEntry {
  readonly name: string;
  /** SHA-256 of the key, 64 lower-case hex digits. */
  readonly hash: string;
  /** Absent: `all`. */
  readonly scope?: KeyScope;
  /** RFC 3339, as is `expiresAt`: from then on the key does not count. */
  readonly createdAt: string;
  readonly expiresAt?: string;
}

const formatVersion = 1;

export function isKeyName(text: string): boolean {
  return /^[A-Za-z0-9][\w.@-]{0,63}$/.test(text);
}

export function isKeyScope(value: unknown): value is KeyScope {
  return (keyScopes as readonly unknown[]).includes(value);
}

export function isLive({ expiresAt }: KeyEntry, now: number): boolean {
  return expiresAt === undefined || Date.parse(expiresAt) > now;
}

/**
 * The keys, or in words what is wrong with the text. Strict: a mistyped `expiresAt` would let a key live for ever. A problem names a
 * place, never a value: it may be a key.
 */
export function parseKeyList(text: string): readonly KeyEntry[] | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "it is no JSON";
  }
  if (!isJsonObject(value)) return "it is no JSON object";
  if (value["version"] !== formatVersion) return `\`version\` is not ${formatVersion}`;
  const list: unknown = value["keys"];
  if (!Array.isArray(list)) return "`keys` is no list";
  for (const [index, entry] of list.entries()) {
    const problem = entryProblem(entry);
    if (problem !== null) return `keys[${index}]: ${problem}`;
  }
  const keys = list as readonly KeyEntry[];
  const double = keys.findIndex(({ name }, index) => keys.findIndex((other) => other.name === name) < index);
  return double < 0 ? keys : `keys[${double}]: another key has the same name`;
}

function entryProblem(entry: unknown): string | null {
  if (!isJsonObject(entry)) return "it is no object";
  const { name, hash, scope, createdAt, expiresAt, ...others } = entry;
  if (Object.keys(others).length > 0) return "it has a field other than name, hash, scope, createdAt and expiresAt";
  if (typeof name !== "string" || !isKeyName(name)) return "`name` is no name";
  if (typeof hash !== "string" || !/^[0-9a-f]{64}$/.test(hash)) return "`hash` is no SHA-256 in lower-case hex";
  if (scope !== undefined && !isKeyScope(scope)) return "`scope` is neither all nor chat";
  if (!isTime(createdAt)) return "`createdAt` is no time";
  return expiresAt === undefined || isTime(expiresAt) ? null : "`expiresAt` is no time";
}

function isTime(value: unknown): boolean {
  return (
    typeof value === "string" &&
    /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(value) &&
    !Number.isNaN(Date.parse(value))
  );
}

export function renderKeyList(keys: readonly KeyEntry[]): string {
  return `${JSON.stringify({ version: formatVersion, keys }, null, 2)}\n`;
}

const spanMs: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** `30d`, `12h`, `4w` from now, or `2027-01-01` (its first moment in UTC). null: neither, or no time to come. */
export function parseExpiry(text: string, now: number): string | null {
  const [, count, unit] = /^(\d{1,6})([hdw])$/.exec(text) ?? [];
  if (count !== undefined) {
    const time = now + Number(count) * (spanMs[unit ?? ""] ?? 0);
    return time > now && time <= lastTime ? new Date(time).toISOString() : null;
  }
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return null;
  const time = Date.parse(`${text}T00:00:00Z`);
  // The 30th of February would be a day in March.
  if (!(time > now) || !new Date(time).toISOString().startsWith(text)) return null;
  return new Date(time).toISOString();
}

/** Years have four digits in the file. */
const lastTime = Date.UTC(9999, 11, 31);
