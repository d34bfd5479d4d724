// Watches the processes that a dead router left behind, and ends those that are unused.
import { setTimeout as delay } from "node:timers/promises";
import { statOf } from "../../state/lock.ts";
import { findLeftovers, killProcess } from "./leftovers.ts";

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
