// Gives processes a core.
import { execFile } from "node:child_process";
import { cpus } from "node:os";
import { promisify } from "node:util";

const run = promisify(execFile);

/** On Linux with two cores the measured processes have the first one, and client and emulator share the second one. */
export async function pin(core: 0 | 1, pids: readonly (number | undefined)[]): Promise<void> {
  if (cpus().length < 2) return;
  for (const pid of pids)
    await run("taskset", ["--all-tasks", "--cpu-list", "--pid", String(core), String(pid)]).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    });
}
