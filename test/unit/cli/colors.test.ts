// Colors are for terminals that have them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { WriteStream } from "node:tty";
import { paintFor } from "../../../src/cli/colors.ts";

/** A terminal, or none, with Node's own check of the environment. */
function stream(isTTY: boolean, environment: Readonly<Record<string, string>>): WriteStream {
  const { getColorDepth } = WriteStream.prototype;
  const hasColors = (): boolean => getColorDepth.call(stream, environment) > 1;
  return { isTTY, hasColors } as unknown as WriteStream;
}

const terminal = { TERM: "xterm-256color" };

for (const [what, isTTY, environment, painted] of [
  ["a terminal", true, terminal, "\u001b[31mtext\u001b[0m"],
  ["NO_COLOR", true, { ...terminal, NO_COLOR: "1" }, "text"],
  ["a dumb terminal", true, { TERM: "dumb" }, "text"],
  ["a pipe", false, { ...terminal, FORCE_COLOR: "1" }, "text"],
] as const)
  test(what, () => {
    const paint = paintFor(stream(isTTY, environment));
    assert.deepEqual([paint("red", "text"), paint("red", "")], [painted, ""]);
  });
