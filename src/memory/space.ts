// How much memory models may take, read when it is asked.
import type { Desired } from "../desired/document/document.ts";
import type { EngineDevice } from "../engines/llama/devices.ts";
import type { Instances } from "../engines/llama/instances.ts";
import type { HostReader } from "./host.ts";
import { type DeviceMemory, limitsOf } from "./limits.ts";
import { type ByDevice, host } from "./need.ts";

export type Space = ReturnType<typeof createSpace>;

/** Placement asks again and again while requests wait, and the memory of a machine does not change that fast. */
const freshMs = 100;

interface Reading {
  readonly at: number;
  /** Of main memory, by process. */
  readonly held: ReadonlyMap<number, number>;
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
  /** Those beside main memory; `free`: with what our models have of it. */
  let devices: ReadonlyMap<string, DeviceMemory> = new Map();

  function current(): Reading {
    const at = options.now();
    if (reading && at - reading.at < freshMs) return reading;
    // Before the memory of the machine: of a process that ends in between too much counts as ours, and nothing is refused for that.
    const held = new Map(options.instances.pids().map((pid) => [pid, reader.held(pid)]));
    reading = { at, held, all: new Map([[host, reader.memory()], ...devices]) };
    return reading;
  }

  return {
    /** What all models together may take, by the document or by other settings. */
    limits: (settings = options.settings()): ByDevice => {
      const { held, all } = current();
      const ours = [...held.values()].reduce((sum, bytes) => sum + bytes, 0);
      return limitsOf(all, new Map([[host, ours]]), settings);
    },
    /** What a process holds of main memory and cannot be taken back from it. */
    held: (pid: number): number => current().held.get(pid) ?? 0,
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
