// Models that let nobody in just now, as something is being done to them: counted, as several may hold one model.
import { countDown } from "./leases.ts";

export interface Holds {
  isHeld(id: string): boolean;
  /** Keeps new requests for the models waiting; call the result to let them in again. */
  hold(models: readonly string[] | "all"): () => void;
}

export function createHolds(onChange: () => void): Holds {
  const held = new Map<string, number>();
  let all = 0;
  return {
    isHeld: (id) => all > 0 || (held.get(id) ?? 0) > 0,
    hold: (models) => {
      if (models === "all") all++;
      else for (const id of models) held.set(id, (held.get(id) ?? 0) + 1);
      onChange();
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        if (models === "all") all--;
        else for (const id of models) countDown(held, id);
        onChange();
      };
    },
  };
}
