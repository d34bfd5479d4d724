// Writes router.preset.ini, which people edit too.
import { setTimeout as delay } from "node:timers/promises";
import { GatewayError, systemCode } from "../core/errors.ts";
import { readIfPresent } from "../state/atomic-file.ts";
import type { StateFiles } from "../state/state-folder.ts";
import type { Handlers } from "./executor.ts";

/** An editor that saves in place writes in pieces: a text that is not ours counts once it stood still for so long. */
const settleMs = 120;

/** `onDisabled` gets the lines of other people that became comments, because the router could not have read them. */
export function presetHandlers(
  presetPath: string,
  write: StateFiles["write"],
  onDisabled: (lines: readonly string[]) => void,
): Pick<Handlers, "preset.write"> {
  let ours: string | null = null;
  return {
    "preset.write": async ({ text, replaces }) => {
      try {
        // Somebody is at it: what is there now is another text than the plan was made from, and the next plan's business.
        const found = await readIfPresent(presetPath);
        if (found !== null && found !== ours) await delay(settleMs);
        if (((await readIfPresent(presetPath)) ?? "") !== replaces) return;
        await write(presetPath, text);
        ours = text;
        const disabled = disabledLines(replaces, text);
        if (disabled.length > 0) onDisabled(disabled);
      } catch (error) {
        if (error instanceof GatewayError) throw error;
        const why = systemCode(error) ?? String(error);
        throw new GatewayError("preset_unwritable", `${presetPath} cannot be read (${why})`, { cause: error });
      }
    },
  };
}

function disabledLines(before: string, after: string): string[] {
  const lines = new Set(after.split("\n"));
  return before
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !/^[;#]/.test(line) && !lines.has(line) && lines.has(`; ${line}`));
}
