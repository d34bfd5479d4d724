// Who reads what `serve` prints. Apart from the log itself, which takes a while to load.
import type { WriteStream } from "node:tty";
import type { Settings } from "../settings/settings.ts";

/** JSON lines; `auto`: on what is no terminal. */
export function isForPrograms(format: Settings["logFormat"], { isTTY }: Pick<WriteStream, "isTTY">): boolean {
  return format === "json" || (format === "auto" && !isTTY);
}
