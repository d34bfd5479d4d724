// The kinds of settings: each reads a value from its text, or throws `invalid_request` with the setting and the text.
import { GatewayError } from "../core/errors.ts";
import { parseKeepAlive } from "../core/keep-alive.ts";
import { type PresetAllow, presetAllowProblem } from "../core/preset-keys.ts";
import { longestTimerMs } from "../core/steady.ts";

/** `given` is undefined where neither the command line nor the environment has it. */
export type Kind<Value> = (
  given: string | undefined,
  row: { readonly name: string; readonly default: string },
) => Value;

export interface SettingRow<Value = unknown> {
  /** Without dashes. */
  readonly flag: string;
  /** How its text is read, with its unit and its minimum; the value's type is what this returns. */
  readonly kind: Kind<Value>;
  /** As the docs show it. Read like a given text, except by the kind `optional`. */
  readonly default: string;
  readonly help: string;
  /** Of the environment. */
  readonly variable: string;
}

export function setting<Value>(
  flag: string,
  kind: Kind<Value>,
  fallback: string,
  help: string,
  variable: string = `GATEWAY_${flag.toUpperCase().replaceAll("-", "_")}`,
): SettingRow<Value> {
  return { flag, kind, default: fallback, help, variable };
}

export const text: Kind<string> = (given, row) => given ?? row.default;

/** Its default is no value: the docs show in words what holds without it. */
export const optional: Kind<string | undefined> = (given) => given;

export function count(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER): Kind<number> {
  return (given, row) => {
    const number = numberFrom(minimum, given, row);
    if (!Number.isSafeInteger(number)) throw invalid(row.name, `must be a whole number, not ${number}`);
    if (number > maximum) throw invalid(row.name, `must be at most ${maximum}, not ${number}`);
    return number;
  };
}

/** Less than a KiB holds no request. */
export const bytes: Kind<number> = count(1024);

/** In ms. Less than `shortest` seconds counts as `shortest`, and more than a timer takes as the longest timer. */
export function seconds(shortest: number = 0): Kind<number> {
  return (given, row) => {
    const ms = Math.round(numberFrom(0, given, row) * 1000);
    return Math.min(Math.max(shortest * 1000, ms), longestTimerMs);
  };
}

export function oneOf<const Choice extends string>(...choices: readonly Choice[]): Kind<Choice> {
  return (given, row) => {
    const value = text(given, row);
    const choice = choices.find((each) => each === value);
    if (choice !== undefined) return choice;
    throw invalid(row.name, `must be one of ${choices.join(", ")}, not ${JSON.stringify(value)}`);
  };
}

export const yesOrNo: Kind<boolean> = (given, row) => oneOf("true", "false")(given, row) === "true";

/** Separated by commas; in small letters. */
export const list: Kind<readonly string[]> = (given, row) =>
  text(given, row)
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== "");

/** Origins of web pages, `https://HOST[:PORT]`. */
export const origins: Kind<readonly string[]> = (given, row) =>
  list(given, row).map((origin) => {
    const bare = origin.replace(/\/$/, "");
    const url = URL.canParse(bare) ? new URL(bare) : null;
    // URL gives no origin for a browser extension's scheme; browsers send one.
    if (url && (url.origin === bare || (url.origin === "null" && /^[a-z][a-z0-9+.-]*:\/\/[\w.-]+$/.test(bare))))
      return bare;
    throw invalid(row.name, "must list origins such as https://chat.example");
  });

export const presetKeys: Kind<PresetAllow> = (given, row) => {
  const keys = list(given, row);
  for (const key of keys) {
    const problem = presetAllowProblem(key);
    if (problem !== null) throw invalid(row.name, `cannot allow ${key}: ${problem}`);
  }
  return new Set(keys);
};

/** A path without a trailing slash. */
export const prefix: Kind<string> = (given, row) => {
  const path = text(given, row).replace(/\/+$/, "");
  // Clients take dots for folders and leave them out.
  if (/^(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)+$/.test(path)) return path;
  throw invalid(row.name, `must be a path such as ${row.default}, not ${JSON.stringify(given)}`);
};

/** ms; null: no end. */
export const duration: Kind<number | null> = (given, row) => {
  const value = text(given, row);
  const keepAlive = parseKeepAlive(/^-?[\d.]+$/.test(value) ? Number(value) : value);
  if (keepAlive === null || keepAlive.kind === "default")
    throw invalid(row.name, `must be seconds, a duration such as 5m, 0, or -1 for ever, not ${JSON.stringify(value)}`);
  return keepAlive.kind === "forever" ? null : keepAlive.seconds * 1000;
};

function numberFrom(minimum: number, given: string | undefined, row: Parameters<Kind<number>>[1]): number {
  const value = text(given, row);
  const number = Number(value);
  if (Number.isFinite(number) && number >= minimum && value.trim() !== "") return number;
  throw invalid(row.name, `must be a number from ${minimum}, not ${JSON.stringify(value)}`);
}

function invalid(name: string, problem: string): GatewayError {
  return new GatewayError("invalid_request", `${name} ${problem}`);
}
