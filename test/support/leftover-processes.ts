// Processes that a test run left behind: those whose environment has the run's temporary folder.
import { readdir, readFile } from "node:fs/promises";

export interface LeftoverProcess {
  readonly pid: number;
  readonly command: string;
}

/** Linux only; elsewhere none are found. */
export async function leftoverProcesses(temporaryFolder: string): Promise<LeftoverProcess[]> {
  if (process.platform !== "linux") return [];
  const found: LeftoverProcess[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    try {
      const environment = (await readFile(`/proc/${name}/environ`, "utf8")).split("\0");
      if (!environment.includes(`TMPDIR=${temporaryFolder}`)) continue;
      found.push({
        pid: Number(name),
        command: (await readFile(`/proc/${name}/cmdline`, "utf8")).replaceAll("\0", " "),
      });
    } catch {
      // It has ended meanwhile, or belongs to somebody else.
    }
  }
  return found;
}
