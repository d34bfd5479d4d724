// Which context of a model would fit, by bisection over the oracle. Pure but for what it asks.
import type { ByDevice, Estimate } from "./need.ts";
import { bytesOf, fitsIn } from "./need.ts";

/** Tokens. */
export const contextStep = 1024;

/** Of a context of so many tokens. Errors: `engine_failed` where the model cannot take the settings. */
export type AskContext = (tokens: number) => Promise<Estimate>;

/** The largest context that fits, in steps of {@link contextStep} up to `most`; null: not even the first one fits. */
export async function largestContext(ask: AskContext, limits: ByDevice, most: number): Promise<number | null> {
  const fits = async (steps: number): Promise<boolean> => fitsIn(bytesOf(await ask(steps * contextStep)), limits);
  let [low, high] = [0, Math.max(1, Math.floor(most / contextStep))];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (await fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? null : low * contextStep;
}

export interface Remedy {
  /** Tokens; null: none would fit. */
  readonly context: number | null;
  /** With the KV cache as q8_0; null: none would fit, or the model cannot take it, or it is so already. */
  readonly quantized: number | null;
}
