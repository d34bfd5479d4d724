// The kinds of settings: each makes rows of the table, which read their value from its text.
import { GatewayError } from "../core/errors.ts";
import { keepAliveMs } from "../core/keep-alive.ts";
import { type PresetAllow, presetAllowProblem } from "../core/preset-keys.ts";
import { longestTimerMs } from "../core/steady.ts";
import { type Network, networkOf } from "./networks.ts";

export interface SettingRow<Value = unknown> {
  /** Without dashes. */
  readonly flag: string;
  /** Of the environment. */
  readonly variable: string;
  /** As a flag and as a variable: it is not known which of them was used. */
  readonly name: string;
  /** As the docs show it. */
  readonly default: string;
  readonly help: string;
  /** `given` is undefined where neither the command line nor the environment has it. Errors: `invalid_request`. */
  readonly read: (given: string | undefined) => Value;
}

type Kind<Value> = (flag: string, fallback: string, help: string, variable?: string) => SettingRow<Value>;

function row<Value>(read: (given: string | undefined, fallback: string, name: string) => Value): Kind<Value> {
  return (flag, fallback, help, variable = `GATEWAY_${flag.toUpperCase().replaceAll("-", "_")}`) => {
    const name = `--${flag} (${variable})`;
    return { flag, variable, name, default: fallback, help, read: (given) => read(given, fallback, name) };
  };
}

/** Its default is no value: the docs show in words what holds without it. */
export const optional = row((given) => given);

/** Its default is read like a given text. */
function kind<Value>(read: (text: string, name: string) => Value): Kind<Value> {
  return row((given, fallback, name) => read(given ?? fallback, name));
}

export const text = kind((given) => given);

export function count(minimum: number, maximum?: number): Kind<number> {
  return kind((given, name) => wholeNumber(given, name, minimum, maximum));
}

export function wholeNumber(
  given: string,
  name: string,
  minimum: number,
  maximum: number = Number.MAX_SAFE_INTEGER,
): number {
  const number = numberFrom(minimum, given, name);
  if (!Number.isSafeInteger(number)) throw invalid(name, `must be a whole number, not ${number}`);
  if (number > maximum) throw invalid(name, `must be at most ${maximum}, not ${number}`);
  return number;
}

/** Less than a KiB holds no request. */
export const bytes = count(1024);

/** In ms. Less than `shortest` seconds counts as `shortest`, and more than a timer takes as the longest timer. */
export function seconds(shortest: number = 0): Kind<number> {
  return kind((given, name) => {
    const ms = Math.round(numberFrom(0, given, name) * 1000);
    return Math.min(Math.max(shortest * 1000, ms), longestTimerMs);
  });
}

export function oneOf<const Choice extends string>(...choices: readonly Choice[]): Kind<Choice> {
  return kind((given, name) => choiceOf(choices, given, name));
}

export const yesOrNo = kind((given, name) => choiceOf(["true", "false"], given, name) === "true");

export const list = kind(entriesOf);

/** Origins of web pages, `https://HOST[:PORT]`. */
export const origins = kind((given, name) =>
  entriesOf(given).map((origin) => {
    const bare = origin.replace(/\/$/, "");
    const url = URL.canParse(bare) ? new URL(bare) : null;
    // URL gives no origin for a browser extension's scheme; browsers send one.
    if (url && (url.origin === bare || (url.origin === "null" && /^[a-z][a-z0-9+.-]*:\/\/[\w.-]+$/.test(bare))))
      return bare;
    throw invalid(name, "must list origins such as https://chat.example");
  }),
);

/** Networks in CIDR notation, or single addresses. */
export const networks = kind((given, name): readonly Network[] =>
  entriesOf(given).map((entry) => {
    const network = networkOf(entry);
    if (network !== null) return network;
    throw invalid(name, `must list networks such as 10.0.0.0/8 or fd00::/8, not ${JSON.stringify(entry)}`);
  }),
);

/** An http or https address without a trailing slash. It may carry a password, so no message has it. */
export const address = row((given, _fallback, name) => {
  if (given === undefined) return undefined;
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return given.replace(/\/+$/, "");
  throw invalid(name, "must be an http or https address without a user name");
});

export const presetKeys = kind((given, name): PresetAllow => {
  const keys = entriesOf(given);
  for (const key of keys) {
    const problem = presetAllowProblem(key);
    if (problem !== null) throw invalid(name, `cannot allow ${key}: ${problem}`);
  }
  return new Set(keys);
});

/** A path without a trailing slash. */
export const prefix = row((given, fallback, name) => {
  const path = (given ?? fallback).replace(/\/+$/, "");
  // Clients take dots for folders and leave them out.
  if (/^(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)+$/.test(path)) return path;
  throw invalid(name, `must be a path such as ${fallback}, not ${JSON.stringify(given)}`);
});

/** ms; null: no end. */
export const duration = kind((given, name) => {
  const ms = keepAliveMs(given);
  if (ms === null)
    throw invalid(name, `must be seconds, a duration such as 5m, 0, or -1 for ever, not ${JSON.stringify(given)}`);
  return Number.isFinite(ms) ? ms : null;
});

function numberFrom(minimum: number, given: string, name: string): number {
  const number = Number(given);
  if (Number.isFinite(number) && number >= minimum && given.trim() !== "") return number;
  throw invalid(name, `must be a number from ${minimum}, not ${JSON.stringify(given)}`);
}

function choiceOf<Choice extends string>(choices: readonly Choice[], given: string, name: string): Choice {
  const choice = choices.find((each) => each === given);
  if (choice !== undefined) return choice;
  throw invalid(name, `must be one of ${choices.join(", ")}, not ${JSON.stringify(given)}`);
}

/** Separated by commas; in small letters. */
function entriesOf(given: string): readonly string[] {
  const entries = given.split(",").map((entry) => entry.trim().toLowerCase());
  return entries.filter((entry) => entry !== "");
}

function invalid(name: string, problem: string): GatewayError {
  return new GatewayError("invalid_request", `${name} ${problem}`);
}
