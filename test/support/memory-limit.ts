// A limit of memory for what this test's process starts from now on: a cgroup of its own, where one can be made.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUp, type Ending } from "./clean-up.ts";

export interface MemoryLimit {
  /** null: no cgroup could be made. */
  readonly folder: string | null;
  /** What this process takes from now on is not counted; what it has started stays limited. */
  leave(): void;
  /** Processes that the system has ended for it. */
  kills(): number;
}

/** Memory that the process has had before is not counted. */
export function limitMemory(t: Ending, bytes: number): MemoryLimit {
  for (const { parent, limitFile, killsFile } of places()) {
    const folder = join(parent, `model-gateway-test-${process.pid}`);
    try {
      mkdirSync(folder);
    } catch {
      continue;
    }
    try {
      writeFileSync(join(folder, limitFile), String(bytes));
      writeFileSync(join(folder, "cgroup.procs"), String(process.pid));
    } catch {
      rmdirSync(folder);
      continue;
    }
    const leave = (): void => writeFileSync(join(parent, "cgroup.procs"), String(process.pid));
    cleanUp(t, () => {
      leave();
      rmdirSync(folder);
    });
    const kills = (): number =>
      Number(/^oom_kill (\d+)$/m.exec(readFileSync(join(folder, killsFile), "utf8"))?.[1] ?? Number.NaN);
    return { folder, leave, kills };
  }
  return { folder: null, leave: () => undefined, kills: () => 0 };
}

/** Where there is no cgroup: `ulimit -v` of a process and of those that it starts from now on. */
export function limitAddressSpace(pid: number, bytes: number): void {
  execFileSync("prlimit", [`--pid=${pid}`, `--as=${bytes}`]);
}

/** Of the first version below the process's own; of the second, whose own has processes, at the top. */
function places(): { readonly parent: string; readonly limitFile: string; readonly killsFile: string }[] {
  const own = readFileSync("/proc/self/cgroup", "utf8");
  const first = /^\d+:(?:\w+,)*memory(?:,\w+)*:(.*)$/m.exec(own)?.[1];
  const second = { parent: "/sys/fs/cgroup", limitFile: "memory.max", killsFile: "memory.events" };
  if (first === undefined) return [second];
  const parent = join("/sys/fs/cgroup/memory", first);
  return [{ parent, limitFile: "memory.limit_in_bytes", killsFile: "memory.oom_control" }];
}
