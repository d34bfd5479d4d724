// What a process of the engine really takes of main memory. Pure.
import { type ByDevice, type Estimate, host } from "./need.ts";

/**
 * Weights count once, though the engine has those that it has rearranged (Q8_0, Q4_0) also in the pages of the file, which the system may
 * take back: a model of 5 GB would not be loaded a second time beside 10 GB. Buffers of the computation count whole: at first
 * the engine has touched a part of them.
 */
export function measuredBytes(
  { own, files }: { readonly own: number; readonly files: number },
  estimate: Estimate | null,
): ByDevice {
  const parts = estimate?.get(host);
  if (!parts) return new Map([[host, own + files]]);
  return new Map([[host, Math.max(own, Math.min(files, parts.model) + parts.context + parts.compute)]]);
}
