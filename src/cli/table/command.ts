// What every command is described by.
import type { CommandLine } from "../../settings/settings.ts";

export interface Command {
  /** The last may be left out where it stands in brackets, and repeated where it has `…`. */
  readonly operands: string;
  /** Flags that its use shows. */
  readonly shown?: string;
  readonly flags: readonly string[];
  /** A line of the list: an imperative. */
  readonly summary: string;
  /** What its own help adds. */
  readonly notes?: string;
  readonly exit?: string;
  /** Two, without the program's name. */
  readonly examples: readonly [string, string];
  /** Resolves with the exit code; `serve` resolves with null when it listens. */
  readonly run: (line: CommandLine) => Promise<number | null>;
}

/** By name, which may be two words. Each command is imported when it runs: all of them together take half a second to load. */
export type Commands = Readonly<Record<string, Command>>;

/** Which gateway. */
export const gateway = ["host", "port", "state"] as const;

/** Of a command that changes one. */
export const changing = [...gateway, "force"] as const;

export const plainExit = "0, 1 error";

/** In the examples. */
export const model = "ggml-org/gemma-3-270m-it-GGUF:Q8_0";
