// The line before an engine of speech, in words for whoever asks it for something.
import { GatewayError } from "../core/errors.ts";
import { createLine, type Line } from "../core/line.ts";

/** Errors of taking a turn: `busy` where too many wait already, `cancelled`. */
export function createTurns(options: { readonly width: number; readonly depth: number; readonly what: string }): Line {
  return createLine({
    width: options.width,
    depth: options.depth,
    refusal: (waiting) =>
      new GatewayError("busy", `${waiting} ${options.what} are waiting already; try again later`, {
        retryAfterMs: 5_000,
      }),
    gone: () => new GatewayError("cancelled", "the client left"),
  });
}
