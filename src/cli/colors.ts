// Colors, on a terminal that has them.
import type { WriteStream } from "node:tty";

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;

export type Color = keyof typeof codes;
export type Paint = (color: Color, text: string) => string;

/** Node's own check has NO_COLOR, and terminals that have none. */
export function paintFor(stream: WriteStream): Paint {
  if (!stream.isTTY || !stream.hasColors()) return (_color, text) => text;
  return (color, text) => (text === "" ? "" : `\u001b[${codes[color]}m${text}\u001b[0m`);
}
