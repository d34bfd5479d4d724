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

/** Of one device, in bytes. */
export interface DeviceShare {
  readonly total: number;
  /** What other programs take. */
  readonly others: number;
  /** What all models together may take. */
  readonly limit: number;
}

/** Models may take what is free now and what they hold, without the reserve, and no more than the budget. */
export function sharesOf(
  devices: ReadonlyMap<string, DeviceMemory>,
  held: ByDevice,
  { reserve, budget }: Desired["memory"],
): ReadonlyMap<string, DeviceShare> {
  return new Map(
    [...devices].map(([device, { total, free }]) => {
      const kept = sizeOf(reserve, device) ?? Math.min(mostReserve, total * reservePart);
      const available = Math.min(total, free + (held.get(device) ?? 0));
      const most = available - kept;
      const limit = Math.max(0, Math.floor(Math.min(most, sizeOf(budget, device) ?? most)));
      return [device, { total, others: total - available, limit }];
    }),
  );
}

/** As it goes over the wire. */
export function sharesBody(shares: ReadonlyMap<string, DeviceShare>) {
  return {
    limits: Object.fromEntries([...shares].map(([device, { limit }]) => [device, limit])),
    devices: [...shares].map(([name, { total, others, limit }]) => ({
      name,
      totalBytes: total,
      othersBytes: others,
      limitBytes: limit,
    })),
  };
}

function sizeOf(sizes: DeviceSizes | undefined, device: string): number | undefined {
  if (typeof sizes !== "object") return sizes;
  return Object.entries(sizes).find(([name]) => name.toLowerCase() === device.toLowerCase())?.[1];
}
