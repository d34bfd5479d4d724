// How much memory a process of ours has, and how much there is.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

/** A process fills about 2 GB in a second. */
const lookAgainMs = 100;

/** Bytes, those in the swap too; null if unknown. */
export async function memoryOf(pid: number): Promise<number | null> {
  const text =
    process.platform === "linux"
      ? await readFile(`/proc/${pid}/status`, "utf8").catch(() => "")
      : await promisify(execFile)("ps", ["-o", "rss=", "-p", String(pid)]).then(
          ({ stdout }) => `VmRSS: ${stdout}`,
          () => "",
        );
  const kilobytes = [...text.matchAll(/^Vm(?:RSS|Swap):\s*(\d+)/gm)].map(([, number]) => Number(number));
  return kilobytes.length === 0 ? null : 1024 * kilobytes.reduce((sum, next) => sum + next, 0);
}

/** Calls `onOver` when the process has more than `limit` bytes together with `elsewhere`; until it ends or the signal aborts. */
export async function watchMemory(
  pid: number,
  limit: number,
  elsewhere: () => Promise<number>,
  onOver: () => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const bytes = await memoryOf(pid);
    if (bytes === null || signal.aborted) return;
    if (bytes + (await elsewhere()) > limit) return onOver();
    await delay(lookAgainMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Bytes that there are for this process and its children: a container may have fewer than the machine. */
export function machineMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
