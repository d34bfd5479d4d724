// What the scheduler asks about memory: what loaded models take, what models may take, and why one does not fit.
import type { Desired } from "../desired/document/document.ts";
import type { Instances } from "../engines/llama/instances.ts";
import type { HostReader } from "./host.ts";
import { type DeviceMemory, limitsOf } from "./limits.ts";
import { type ByDevice, host, lacking, type Need } from "./need.ts";

export type ModelMemory = ReturnType<typeof createModelMemory>;

/** Placement asks again and again while requests wait, and the memory of a machine does not change that fast. */
const freshMs = 100;

/** The engine's words for memory that it did not get. */
const shortage = /out of (device )?memory|insufficient memory|cannot allocate memory|bad_alloc|(failed|unable) to allocate|malloc failed/i;

interface Reading {
  readonly at: number;
  /** Of main memory, by process. */
  readonly held: ReadonlyMap<number, number>;
  readonly limits: ByDevice;
}

export function createModelMemory(options: {
  readonly reader: HostReader;
  /** Those beside main memory; `free`: with what our models hold. */
  readonly devices: () => ReadonlyMap<string, DeviceMemory>;
  readonly settings: () => Desired["memory"];
  readonly need: (id: string) => Need | null | undefined;
  readonly instances: Pick<Instances, "list" | "get" | "detachedUsers">;
  /** The model's own id, by the router's. */
  readonly nameOf: (id: string) => string;
  /** What would fit, in words; empty: not known. */
  readonly remedy: (id: string) => string;
  /** ms */
  readonly now: () => number;
}) {
  const { reader, instances, need } = options;
  let reading: Reading | null = null;
  let killsBefore = 0;

  function current(): Reading {
    const at = options.now();
    if (reading && at - reading.at < freshMs) return reading;
    // Before the memory of the machine: of a process that ends meanwhile too much is counted as ours, and nothing is refused for that.
    const pids = instances.list().flatMap(({ pid }) => pid ?? []);
    const held = new Map(pids.map((pid) => [pid, reader.held(pid)]));
    const all = [...held.values()].reduce((sum, bytes) => sum + bytes, 0);
    const devices = new Map([[host, reader.memory()], ...options.devices()]);
    reading = { at, held, limits: limitsOf(devices, new Map([[host, all]]), options.settings()) };
    return reading;
  }

  /** A cache of prompts grows with use, beyond what was needed at first. */
  function taken(id: string): ByDevice {
    const { pid = null } = instances.get(id) ?? {};
    const bytes = need(id)?.bytes ?? new Map<string, number>();
    const held = pid === null ? 0 : (current().held.get(pid) ?? 0);
    return held <= (bytes.get(host) ?? 0) ? bytes : new Map([...bytes, [host, held]]);
  }

  return {
    need: (id: string): ByDevice | null | undefined => {
      const known = need(id);
      return known ? known.bytes : known;
    },
    taken,
    limits: (): ByDevice => current().limits,
    hasLeftovers: (): boolean => instances.detachedUsers() > 0,
    refusal: (id: string, left: ByDevice): string => {
      const remedy = options.remedy(id);
      return `${options.nameOf(id)} ${sumText(need(id), left)}${remedy === "" ? "" : `; ${remedy}`}`;
    },
    /** A load is about to begin. */
    begin: (): void => {
      killsBefore = reader.kills();
    },
    /** Of a load that ended early: what it needed and what there is; null: memory was not short. */
    shortage: (id: string, output: string): string | null => {
      if (!shortage.test(output) && reader.kills() === killsBefore) return null;
      reading = null;
      const used = new Map<string, number>();
      for (const { id: other } of instances.list()) addTo(used, taken(other));
      const free = [...current().limits].map(([device, limit]) => [device, limit - (used.get(device) ?? 0)] as const);
      return `it ${sumText(need(id), new Map(free))}`;
    },
  };
}

function addTo(sum: Map<string, number>, bytes: ByDevice): void {
  for (const [device, more] of bytes) sum.set(device, (sum.get(device) ?? 0) + more);
}

/** Of the device that lacks the most, else of main memory. */
function sumText(need: Need | null | undefined, left: ByDevice): string {
  if (!need) return `needs an unknown amount of memory, ${inGiB(left.get(host) ?? 0)} are free`;
  const { device, needed, limit } = lacking(need.bytes, left) ?? {
    device: host,
    needed: need.bytes.get(host) ?? 0,
    limit: left.get(host) ?? 0,
  };
  const what = device === host ? "memory" : `the memory of ${device}`;
  return `needs ${inGiB(needed)} of ${what}, ${inGiB(limit)} are free`;
}

function inGiB(bytes: number): string {
  return `${(Math.max(0, bytes) / 2 ** 30).toFixed(1)} GiB`;
}
