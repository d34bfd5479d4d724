// Looks at processes of this machine (Linux).
import { readdir, readFile } from "node:fs/promises";
import { until } from "./scratch.ts";

/** Direct children of a process. */
export async function childrenOf(pid: number): Promise<number[]> {
  const lists = await Promise.all(
    (await readdir(`/proc/${pid}/task`)).map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, "utf8")),
  );
  return lists
    .join(" ")
    .split(/\s+/)
    .filter((text) => text !== "")
    .map(Number);
}

/** Whether a process is there and no zombie. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    return (await stateIn(`/proc/${pid}/stat`)) !== "Z";
  } catch {
    return false;
  }
}

/** Resolves when none of its threads goes on: a signal to stop reaches each of them when it comes to it. */
export async function untilStopped(pid: number): Promise<void> {
  await until("it is stopped", async () => {
    const threads = await readdir(`/proc/${pid}/task`);
    const states = await Promise.all(threads.map((thread) => stateIn(`/proc/${pid}/task/${thread}/stat`)));
    return states.every((state) => state === "T");
  });
}

async function stateIn(path: string): Promise<string | undefined> {
  const stat = await readFile(path, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2)[0];
}

/** MB of memory that a process has in use. */
export async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

/** Processor time that a process has used so far, in ms (of 10, as the kernel counts). */
export async function processorMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // Fields 14 and 15 (user and system), counted after the command's name.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** ms of processor time of all threads, to the nanosecond. */
export async function processorTime(pids: readonly number[]): Promise<number> {
  let ns = 0;
  for (const pid of pids)
    for (const thread of await readdir(`/proc/${pid}/task`))
      ns += Number((await readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8").catch(() => "0")).split(" ")[0]);
  return ns / 1e6;
}
