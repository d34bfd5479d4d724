// Reaps processes left behind by a dead router: watched until the last one has ended, and ended if unused.
// A process belongs to the router by its group, and to us by the marker in its environment.
import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { findLeftovers, killProcess } from "./leftovers.ts";

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
      const work = endOrphans({ stateDir, group, inUse, everyMs: lookMs, signal: closing.signal })
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
async function endOrphans(options: {
  readonly stateDir: string;
  /** The router's pid: that of its process group, which is not reused while a process is in it. */
  readonly group: number;
  readonly inUse: () => ReadonlySet<number>;
  readonly everyMs: number;
  readonly signal: AbortSignal;
}): Promise<readonly number[]> {
  const { stateDir, group, signal } = options;
  const ended: number[] = [];
  let idle: readonly number[] = [];
  for (;;) {
    await delay(options.everyMs, undefined, { signal, ref: false }).catch(() => undefined);
    const members = await membersOf(group, await findLeftovers(stateDir));
    if (members.length === 0) return ended;
    const used = signal.aborted ? new Set<number>() : options.inUse();
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
