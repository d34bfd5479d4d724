// Which context of a model would fit, by a search over the oracle; made once for the limits that there are.
import { type ByDevice, excessOf, fitsIn } from "./need.ts";

/** Tokens. */
export const contextStep = 1024;

export type Overrides = Readonly<Record<string, string>>;

/** What a context of so many tokens takes. Errors: `engine_failed` where the model cannot take the settings. */
type AskContext = (tokens: number) => Promise<ByDevice>;

/** Memory grows with the context nearly in a line: these steps are guessed by it, the next ones halve what is left. */
const guesses = 4;

/** The largest context that fits, in steps of {@link contextStep} up to `most`; null: not even the first one fits. */
export async function largestContext(ask: AskContext, limits: ByDevice, most: number): Promise<number | null> {
  const excessAt = async (steps: number): Promise<number> => excessOf(await ask(steps * contextStep), limits);
  let [low, high] = [1, Math.max(1, Math.floor(most / contextStep))];
  let [excess, fault] = [await excessAt(low), await excessAt(high)];
  if (excess > 0) return null;
  if (fault <= 0) return high * contextStep;
  for (let round = 0; high - low > 1; round++) {
    const part = round < guesses ? -excess / (fault - excess) : 0.5;
    const middle = Math.min(Math.max(low + Math.floor((high - low) * part), low + 1), high - 1);
    const found = await excessAt(middle);
    if (found <= 0) [low, excess] = [middle, found];
    else [high, fault] = [middle, found];
  }
  return low * contextStep;
}

export interface Remedy {
  /** Tokens; null: none would fit. */
  readonly context: number | null;
  /** With the KV cache as q8_0; null: none would fit, or the model cannot take it, or it is so already. */
  readonly quantized: number | null;
}

const quantizedCache: Overrides = { "cache-type-k": "q8_0", "cache-type-v": "q8_0" };

interface Found {
  readonly key: string;
  readonly within: ByDevice;
  /** null: none can be told; undefined: it is being sought. */
  remedy: Remedy | null | undefined;
}

/** A remedy for less than this is too small. */
const usefulPart = 13 / 16;

export function createRemedies(startJob: (key: string, work: () => Promise<void>) => void) {
  let found: Found[] = [];

  return {
    clear: (): void => {
      found = [];
    },
    /** undefined: it is being sought. */
    of: (
      key: string,
      limits: ByDevice,
      contextFor: (within: ByDevice, overrides: Overrides) => Promise<number | null>,
    ): Remedy | null | undefined => {
      const least = partOf(limits, usefulPart);
      const isUseful = ({ key: of, within }: Found): boolean =>
        of === key && fitsIn(within, limits) && fitsIn(least, within);
      const useful = found.filter(isUseful);
      if (useful.length === 0) {
        const next: Found = { key, within: heldOf(limits), remedy: undefined };
        found.push(next);
        startJob(`remedy ${key} ${JSON.stringify([...next.within])}`, async () => {
          const plain = await contextFor(next.within, {}).catch(() => undefined);
          const quantized = await contextFor(next.within, quantizedCache).catch(() => null);
          next.remedy = plain === undefined ? null : { context: plain, quantized };
        });
      }
      return useful.findLast(({ remedy }) => remedy !== undefined)?.remedy;
    },
  };
}

/** What is free changes all the time, and a process takes a little more than its buffers: so much of it holds when it is tried. */
export function heldOf(limits: ByDevice): ByDevice {
  return partOf(limits, 15 / 16);
}

function partOf(limits: ByDevice, part: number): ByDevice {
  return new Map([...limits].map(([device, bytes]) => [device, Math.floor(bytes * part)]));
}
