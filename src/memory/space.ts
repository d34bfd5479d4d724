// How much memory models may take, read when it is asked.
import type { Desired } from "../desired/document/document.ts";
import type { EngineDevice } from "../engines/llama/devices.ts";
import type { Instances } from "../engines/llama/instances.ts";
import type { HostReader } from "./host.ts";
import { type DeviceMemory, type DeviceShare, sharesOf } from "./limits.ts";
import { type ByDevice, host } from "./need.ts";

export type Space = ReturnType<typeof createSpace>;

/** Placement asks again and again while requests wait, and the memory of a machine does not change that fast. */
const freshMs = 100;

interface Reading {
  readonly at: number;
  readonly all: ReadonlyMap<string, DeviceMemory>;
}

export function createSpace(options: {
  readonly reader: HostReader;
  readonly settings: () => Desired["memory"];
  readonly instances: Pick<Instances, "pids">;
  /** ms */
  readonly now: () => number;
}) {
  const { reader } = options;
  let reading: Reading | null = null;
  /** Of main memory, by process. */
  let held: ReadonlyMap<number, number> = new Map();
  /** Those beside main memory; `free`: with what our models have of it. */
  let devices: ReadonlyMap<string, DeviceMemory> = new Map();

  function current(): Reading {
    const at = options.now();
    if (reading && at - reading.at < freshMs) return reading;
    // Before the memory of the machine: of a process that ends in between too much counts as ours, and nothing is refused for that.
    // One that ends says nothing more, and its memory is freed for 60 ms per GB yet: for that, others were ended and requests refused.
    const before = held;
    held = new Map(options.instances.pids().map((pid) => [pid, reader.held(pid) ?? before.get(pid) ?? 0]));
    reading = { at, all: new Map([[host, reader.memory()], ...devices]) };
    return reading;
  }

  function shares(settings = options.settings()): ReadonlyMap<string, DeviceShare> {
    const { all } = current();
    const ours = [...held.values()].reduce((sum, bytes) => sum + bytes, 0);
    return sharesOf(all, new Map([[host, ours]]), settings);
  }

  return {
    /** What all models together may take, by the document or by other settings. */
    limits: (settings?: Desired["memory"]): ByDevice =>
      new Map([...shares(settings)].map(([device, { limit }]) => [device, limit])),
    /** Every device, and what models may take of it. */
    shares,
    /** What a process holds of main memory and cannot be taken back from it. */
    held: (pid: number): number => {
      current();
      return held.get(pid) ?? 0;
    },
    /** The devices were listed, while our models had so much of them. */
    seeDevices: (list: readonly EngineDevice[], taken: ByDevice): void => {
      devices = new Map(
        list.map(({ name, totalBytes, freeBytes }) => {
          const free = Math.min(totalBytes, freeBytes + (taken.get(name) ?? 0));
          return [name, { total: totalBytes, free }];
        }),
      );
      reading = null;
    },
    /** Much has changed at once. */
    refresh: (): void => {
      reading = null;
    },
  };
}
