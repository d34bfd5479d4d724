// Reads single settings from their text: numbers, times, choices. Says in both spellings what is wrong with one.
import { GatewayError } from "../core/errors.ts";
import { settingRows } from "./table.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export type Flag = (typeof settingRows)[number]["flag"];

/** What was given; undefined where the default holds. */
export type SettingText = (flag: Flag) => string | undefined;

/** Each throws `invalid_request` for a text that is no such value. */
export interface SettingValues {
  whole(flag: Flag, least: number): number;
  /** Given in seconds. */
  ms(flag: Flag): number;
  oneOf(flag: Flag, values: readonly string[]): string;
}

const longestTimerMs = 2 ** 31 - 1;

export function settingValues(text: SettingText): SettingValues {
  const count = (flag: Flag, least: number): number => {
    const value = text(flag) ?? fallbackOf(flag);
    const number = Number(value);
    if (!Number.isFinite(number) || number < least || value.trim() === "") {
      throw new GatewayError(
        "invalid_request",
        `${spelt(flag)} must be a number from ${least}, not ${JSON.stringify(value)}`,
      );
    }
    return number;
  };
  return {
    whole: (flag, least) => {
      const number = count(flag, least);
      if (Number.isSafeInteger(number)) return number;
      throw new GatewayError("invalid_request", `${spelt(flag)} must be a whole number, not ${number}`);
    },
    // A timer that is longer goes off at once.
    ms: (flag) => Math.min(Math.round(count(flag, 0) * 1000), longestTimerMs),
    oneOf: (flag, values) => {
      const value = text(flag) ?? fallbackOf(flag);
      if (values.includes(value)) return value;
      throw new GatewayError(
        "invalid_request",
        `${spelt(flag)} must be one of ${values.join(", ")}, not ${JSON.stringify(value)}`,
      );
    },
  };
}

/** Both spellings, as it is not known here which of them was used. */
export function spelt(flag: Flag): string {
  return `--${flag} (${settingRows.find((row) => row.flag === flag)?.variable ?? ""})`;
}

export function fallbackOf(flag: Flag): string {
  return settingRows.find((row) => row.flag === flag)?.fallback ?? "";
}
