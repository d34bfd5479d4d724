// Whether the pulls that are due fit on the disk. Pure: sizes come in as far as they are known.
import type { Action } from "./actions.ts";
import type { Knowable } from "./observed.ts";

/** Left free on the disk for everything else. */
export const reserveBytes = 256 * 1024 * 1024;

/** Known needs of transfers for disk space. */
export interface Needs {
  /** Bytes still to come of those that wait, by {@link sizeKey}. */
  readonly bytes: ReadonlyMap<string, number>;
  /** By their keys the actions that are at it, planned or asked for, with the bytes still to come: they have their room. */
  readonly underWay: ReadonlyMap<string, number>;
}

export const noNeeds: Needs = { bytes: new Map(), underWay: new Map() };

/** The same model at another revision has another size. */
export function sizeKey(action: Action): string {
  const which = action.kind === "model.pull" ? (action.revision ?? "") : "";
  return `${action.kind} ${action.key} ${which}`;
}

/**
 * For one transfer after the other, in the order of the calls: a message with what is missing; null if it fits, or if its size or
 * the free disk space is unknown. What fits counts for those after it.
 */
export function createRoomCheck(freeBytes: Knowable<number>, needs: Needs) {
  const free = freeBytes.state === "known" ? freeBytes.value : Number.POSITIVE_INFINITY;
  // Those that are under way go on, whatever stands before them in the document.
  let promised = [...needs.underWay.values()].reduce((sum, bytes) => sum + bytes, 0);
  return (action: Action): string | null => {
    if (needs.underWay.has(action.key)) return null;
    const need = needs.bytes.get(sizeKey(action)) ?? 0;
    if (need === 0) return null;
    if (need + promised + reserveBytes <= free) {
      promised += need;
      return null;
    }
    const others = promised > 0 ? `, pulls before it take ${inMiB(promised)}` : "";
    const lacking = need + promised + reserveBytes - free;
    return `it needs ${inMiB(need)}${others} and ${inMiB(reserveBytes)} stay free; the model cache's disk has ${inMiB(free)}: ${inMiB(lacking)} are missing`;
  };
}

export function inMiB(bytes: number): string {
  return `${Math.ceil(bytes / (1024 * 1024)).toLocaleString("en")} MiB`;
}
