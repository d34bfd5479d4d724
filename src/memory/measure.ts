// What a process of the engine really takes of main memory.
import { readFile } from "node:fs/promises";
import { type ByDevice, type Estimate, host } from "./need.ts";

/** Bytes: of memory that is its own, and of files that it has mapped; null: it has ended, or this is not Linux. */
export async function readProcess(pid: number): Promise<{ readonly own: number; readonly files: number } | null> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
  const part = (name: string): number | null => {
    const found = new RegExp(`^Pss_${name}:\\s*(\\d+) kB$`, "m").exec(text)?.[1];
    return found === undefined ? null : 1024 * Number(found);
  };
  const [own, files, shared] = [part("Anon"), part("File"), part("Shmem")];
  return own === null || files === null ? null : { own: own + (shared ?? 0), files };
}

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
