// Writes router.preset.ini, which its owner edits too.
import { setTimeout as delay } from "node:timers/promises";
import { GatewayError, reasonOf } from "../core/errors.ts";
import { parsePreset } from "../plan/preset-file.ts";
import { readIfPresent } from "../state/atomic-file.ts";
import type { StateFiles } from "../state/state-folder.ts";
import type { Handlers } from "./executor.ts";

/** An editor that saves in place writes in pieces: a foreign text counts once it is unchanged for so long. */
const settleMs = 120;

/** `onDisabled` gets foreign lines that became comments, because the router cannot parse them. */
export function presetHandlers(
  presetPath: string,
  write: StateFiles["write"],
  onDisabled: (lines: readonly string[]) => void,
): Pick<Handlers, "preset.write"> {
  let ours: string | null = null;
  return {
    "preset.write": async ({ text, replaces }) => {
      try {
        // It is being edited: the text differs from the one in the plan, so the next plan decides.
        let found = await readIfPresent(presetPath);
        if (found !== null && found !== ours) found = await delay(settleMs).then(() => readIfPresent(presetPath));
        if ((found ?? "") !== replaces) return { seen: null };
        await write(presetPath, text, false);
        ours = text;
        const disabled = disabledLines(replaces, text);
        if (disabled.length > 0) onDisabled(disabled);
        return { seen: { preset: { state: "known", value: parsePreset(text) } } };
      } catch (error) {
        if (error instanceof GatewayError) throw error;
        const why = reasonOf(error);
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
