// The processes that a router which is gone has left: watched until the last one has ended, and ended where nobody uses them.
// A process is one of its by its group, and ours by the marker in its environment.
import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { findLeftovers, killProcess } from "./leftovers.ts";

export interface Orphans {
  /** `group`: the number of the router that is gone, which is that of its process group. */
  lookAfter(group: number): void;
  /** Ends them all, used or not. */
  close(): Promise<void>;
}

/** How often they are looked at. */
const lookMs = 1_500;

export function createOrphans(options: {
  readonly stateDir: string;
  /** Processes that answers are in flight on. */
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
          if (pids.length > 0) warn("ended processes of a router that is gone", { pids });
        })
        .catch((error: unknown) => warn("processes of a router that is gone may be left", { error: String(error) }))
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
 * Looks after the processes of a router that is gone, until none is left: those that nobody uses are ended at the second look.
 * Most end by themselves, as their input does; one that hangs, or is still loading, does not notice. Aborting the signal
 * ends what is left. Linux only.
 */
async function endOrphans(options: {
  readonly stateDir: string;
  /** The router's number: that of its process group, which is not given away while anybody is in it. */
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
