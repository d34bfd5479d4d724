// What a model takes at most with another context than it was loaded with. Pure.
import type { ByDevice } from "./need.ts";

/** By settings, which name all but the context: with a larger one a model takes no more than in proportion. */
export function createBounds() {
  const loaded = new Map<string, { readonly tokens: number; readonly bytes: ByDevice }>();
  return {
    note: (settings: string, tokens: number, bytes: ByDevice): void => void loaded.set(settings, { tokens, bytes }),
    /** null: that is not known. */
    of: (settings: string, tokens: number): ByDevice | null => {
      const known = loaded.get(settings);
      // The engine may put layers of another device into main memory.
      if (!known || known.bytes.size > 1) return null;
      const factor = Math.max(1, tokens / known.tokens);
      return new Map([...known.bytes].map(([device, bytes]) => [device, bytes * factor]));
    },
  };
}
