// How much of each device's memory models may take. Pure.
import type { Desired, DeviceSizes } from "../desired/document/document.ts";
import type { ByDevice } from "./need.ts";

/** Bytes. */
export interface DeviceMemory {
  readonly total: number;
  /** What could still be taken. */
  readonly free: number;
}

const mostReserve = 2 ** 30;
const reservePart = 1 / 16;

/** What is free now and what our models hold, without the reserve, and no more than the budget. */
export function limitsOf(
  devices: ReadonlyMap<string, DeviceMemory>,
  held: ByDevice,
  { reserve, budget }: Desired["memory"],
): ByDevice {
  return new Map(
    [...devices].map(([device, { total, free }]) => {
      const kept = sizeOf(reserve, device) ?? Math.min(mostReserve, total * reservePart);
      const most = Math.min(total, free + (held.get(device) ?? 0)) - kept;
      return [device, Math.max(0, Math.floor(Math.min(most, sizeOf(budget, device) ?? most)))];
    }),
  );
}

function sizeOf(sizes: DeviceSizes | undefined, device: string): number | undefined {
  if (typeof sizes !== "object") return sizes;
  return Object.entries(sizes).find(([name]) => name.toLowerCase() === device.toLowerCase())?.[1];
}
