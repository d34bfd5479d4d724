// How much memory a model gets whose context is left to the gateway, and when a choice still holds. Pure.
import type { ByDevice } from "./need.ts";

/** Of what the others leave: a process takes a little more than its buffers, and what is free changes all the time. */
const usedPart = 15 / 16;
/** A choice holds until a limit has moved by this part of it: another one would end the model's process. */
const samePart = 1 / 8;

/** What the model may take: what the others leave and, where they choose as well, an equal share of what is left to choose. */
export function shareOf(
  limits: ByDevice,
  needs: {
    /** With the smallest context. */
    readonly own: ByDevice;
    /** Of pinned models with contexts of their own. */
    readonly fixed: readonly ByDevice[];
    /** With the smallest context, of pinned models that choose too. */
    readonly choosing: readonly ByDevice[];
  },
): ByDevice {
  return new Map(
    [...limits].map(([device, limit]) => {
      const own = onDevice([needs.own], device);
      const free = (limit - onDevice(needs.fixed, device)) * usedPart;
      const left = free - onDevice(needs.choosing, device) - own;
      return [device, Math.max(0, Math.floor(own + left / (1 + needs.choosing.length)))];
    }),
  );
}

function onDevice(needs: readonly ByDevice[], device: string): number {
  const all = needs.flatMap((need) => [...need]).filter(([name]) => name.toLowerCase() === device.toLowerCase());
  return all.reduce((sum, [, bytes]) => sum + bytes, 0);
}

export function areSameLimits(before: Readonly<Record<string, number>>, now: ByDevice): boolean {
  const isSame = ([device, limit]: readonly [string, number]): boolean =>
    Math.abs(limit - (before[device] ?? Number.POSITIVE_INFINITY)) <= limit * samePart;
  return Object.keys(before).length === now.size && [...now].every(isSame);
}
