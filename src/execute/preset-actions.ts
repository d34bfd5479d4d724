// Writes router.preset.ini.
import { GatewayError, systemCode } from "../core/errors.ts";
import { writeAtomic } from "../desired/atomic-file.ts";
import type { Handlers } from "./executor.ts";

export function presetHandlers(presetPath: string): Pick<Handlers, "preset.write"> {
  return {
    "preset.write": async ({ text }) => {
      try {
        await writeAtomic(presetPath, text);
      } catch (error) {
        const code = systemCode(error) === "ENOSPC" ? "disk_full" : "preset_unwritable";
        throw new GatewayError(code, `${presetPath} cannot be written (${systemCode(error) ?? String(error)})`, { cause: error });
      }
    },
  };
}
