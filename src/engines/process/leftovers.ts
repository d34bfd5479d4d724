// Finds and ends engine processes that a killed gateway or a dead router left behind, and only those.
// A process is ours by the marker in its environment, which names this state folder: a pid alone may have been reused.
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { systemCode } from "../../core/errors.ts";
import { statOf } from "../../state/lock.ts";

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
function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (systemCode(error) !== "ESRCH") throw error;
  }
}

export interface Orphans {
  /** `group`: the pid of the dead router, which is that of its process group. */
  lookAfter(group: number): void;
  /** Ends them all, used or not. */
  close(): Promise<void>;
}

/** Interval of the scans. */
const lookMs = 1_500;

interface OrphanOptions {
  readonly stateDir: string;
  /** Processes with responses in flight. */
  readonly inUse: () => ReadonlySet<number>;
  readonly warn: (message: string, fields: object) => void;
}

export function createOrphans(options: OrphanOptions): Orphans {
  const works = new Set<Promise<unknown>>();
  const closing = new AbortController();
  return {
    lookAfter: (group) => {
      const work = endOrphans(options, group, closing.signal)
        .catch((error: unknown) => options.warn("processes of a dead router may be left", { error: String(error) }))
        .finally(() => works.delete(work));
      works.add(work);
    },
    close: async () => {
      closing.abort();
      await Promise.all(works);
    },
  };
}

/**
 * Watches the processes of a dead router until none is left: unused ones are ended at the second scan. Most end by themselves when
 * their input closes; one that hangs, or still loads, does not. Aborting the signal ends the rest. Linux only.
 */
async function endOrphans({ stateDir, inUse, warn }: OrphanOptions, group: number, signal: AbortSignal): Promise<void> {
  const ended: number[] = [];
  let idle: readonly number[] = [];
  for (let isOver = false; !isOver; ) {
    await delay(lookMs, undefined, { signal, ref: false }).catch(() => undefined);
    const members = await membersOf(group, await findLeftovers(stateDir));
    const used = signal.aborted ? new Set<number>() : inUse();
    const unused = members.filter((pid) => !used.has(pid));
    const late = signal.aborted ? unused : unused.filter((pid) => idle.includes(pid));
    for (const pid of late) killProcess(pid);
    ended.push(...late);
    idle = unused;
    isOver = signal.aborted || members.length === 0;
  }
  if (ended.length > 0) warn("processes of a dead router ended", { pids: ended });
}

async function membersOf(group: number, pids: readonly number[]): Promise<number[]> {
  const stats = await Promise.all(pids.map(statOf));
  return pids.filter((_pid, index) => stats[index]?.group === String(group));
}
