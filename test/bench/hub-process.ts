// The hub with one large file (`pull-hub.ts`), started as a process of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import { fileURLToPath } from "node:url";

export interface Hub {
  readonly endpoint: string;
  readonly path: string;
}

/** `size` in bytes; `rate` in bytes per second for each connection, 0: no limit. `niceness`: of the process. */
export async function startHub(size: number, rate: number, niceness = 0): Promise<{ hub: Hub; stop(): Promise<void> }> {
  const script = fileURLToPath(new URL("./pull-hub.js", import.meta.url));
  const child = spawn(process.execPath, [script, String(size), String(rate)], { stdio: ["pipe", "pipe", "inherit"] });
  if (child.pid !== undefined) setPriority(child.pid, niceness);
  const [line]: unknown[] = await once(child.stdout.setEncoding("utf8"), "data");
  return {
    hub: JSON.parse(String(line)) as Hub,
    async stop() {
      child.stdin.end();
      await once(child, "exit");
    },
  };
}
