// Finds and ends engine processes that a killed gateway left behind, and only those.
// A process is ours by the marker in its environment, which names this state folder: a pid alone may have been reused.
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { systemCode } from "../../core/errors.ts";

export const markerName = "MODEL_GATEWAY_ENGINE_OF";

/** The value that engines of this state folder carry in their environment. */
export function markerValue(stateDir: string): string {
  return createHash("sha256").update(stateDir).digest("hex").slice(0, 24);
}

/** Processes with the marker. Linux only: elsewhere there is no way to read another process's environment for certain. */
export async function findLeftovers(stateDir: string): Promise<number[]> {
  if (process.platform !== "linux") return [];
  const wanted = `${markerName}=${markerValue(stateDir)}`;
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(pids.map(async (pid) => ((await environmentOf(pid)).includes(wanted) ? pid : null)));
  return found.filter((pid) => pid !== null && pid !== process.pid) as number[];
}

/** Ends what {@link findLeftovers} finds and resolves when it is gone. Call it only under the state folder's lock. */
export async function endLeftovers(stateDir: string): Promise<number[]> {
  const ended = new Set<number>();
  // Children of a killed router may appear between two scans.
  for (let round = 0; round < 50; round++) {
    const pids = await findLeftovers(stateDir);
    if (pids.length === 0) break;
    for (const pid of pids) {
      ended.add(pid);
      killProcess(pid);
    }
    await delay(20);
  }
  return [...ended];
}

async function environmentOf(pid: number): Promise<readonly string[]> {
  try {
    return (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0");
  } catch (error) {
    // Gone meanwhile, or another user's: not ours.
    if (["ENOENT", "ESRCH", "EACCES", "EPERM"].includes(systemCode(error) ?? "")) return [];
    throw error;
  }
}

/** A process that has ended is no error. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (systemCode(error) !== "ESRCH") throw error;
  }
}
