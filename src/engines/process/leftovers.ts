// Finds and ends engine processes that a killed gateway or a dead router left behind, and only those.
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

export function createOrphans(options: {
  readonly stateDir: string;
  /** Processes with responses in flight. */
  readonly inUse: () => ReadonlySet<number>;
  readonly warn: (message: string, fields: object) => void;
}): Orphans {
  const { stateDir, inUse, warn } = options;
  const works = new Set<Promise<unknown>>();
  const closing = new AbortController();
  return {
    lookAfter: (group) => {
      const work = endOrphans(stateDir, group, inUse, closing.signal)
        .then((pids) => {
          if (pids.length > 0) warn("processes of a dead router ended", { pids });
        })
        .catch((error: unknown) => warn("processes of a dead router may be left", { error: String(error) }))
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
async function endOrphans(
  stateDir: string,
  group: number,
  inUse: () => ReadonlySet<number>,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const ended: number[] = [];
  let idle: readonly number[] = [];
  for (;;) {
    await delay(lookMs, undefined, { signal, ref: false }).catch(() => undefined);
    const members = await membersOf(group, await findLeftovers(stateDir));
    if (members.length === 0) return ended;
    const used = signal.aborted ? new Set<number>() : inUse();
    const unused = members.filter((pid) => !used.has(pid));
    const late = signal.aborted ? unused : unused.filter((pid) => idle.includes(pid));
    for (const pid of late) killProcess(pid);
    ended.push(...late);
    if (signal.aborted) return ended;
    idle = unused;
  }
}

async function membersOf(group: number, pids: readonly number[]): Promise<number[]> {
  const groups = await Promise.all(
    pids.map(async (pid) => {
      // The third field after the command's name, which may hold blanks and brackets.
      const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
    }),
  );
  return pids.filter((_pid, index) => groups[index] === group);
}
