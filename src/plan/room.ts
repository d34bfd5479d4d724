// Disk space that a pull lacks. Pure.
import type { BackoffEntry } from "./actions.ts";
import type { Knowable } from "./observed.ts";

/** Left free on the disk for everything else. */
export const reserveBytes = 256 * 1024 * 1024;

/** What an action still lacks that has found the disk too full; null: nothing, as far as is known. */
export function lackingSpace(
  { neededBytes }: Pick<BackoffEntry, "neededBytes">,
  freeBytes: Knowable<number>,
): string | null {
  if (neededBytes === undefined || freeBytes.state === "unknown") return null;
  const lacking = neededBytes + reserveBytes - freeBytes.value;
  if (lacking <= 0) return null;
  return `it needs ${inMiB(neededBytes)} and ${inMiB(reserveBytes)} stay free; the model cache's disk has ${inMiB(freeBytes.value)}: ${inMiB(lacking)} are missing`;
}

export function inMiB(bytes: number): string {
  return `${Math.ceil(bytes / (1024 * 1024)).toLocaleString("en")} MiB`;
}
