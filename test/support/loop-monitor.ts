// How long the event loop of a gateway's process is blocked: loaded into the process before the gateway, and asked from the test.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";
import type { RunningCommand } from "./command.ts";
import { until } from "./scratch.ts";

export interface LoopReport {
  /** ms by the clock, as `monitorEventLoopDelay` has them: on a busy machine other processes' time counts too. */
  readonly delayMs: number;
  /** ms of processor time that the main thread spent in one turn of the loop; by the clock where the kernel does not tell. */
  readonly turnMs: number;
}

const variable = "LOOP_MONITOR_FILE";
const everyMs = 5;

export function loopMonitor(folder: string): {
  readonly environment: Readonly<Record<string, string>>;
  /** The longest since the last report. */
  report(command: RunningCommand): Promise<LoopReport>;
} {
  const file = join(folder, "loop-monitor.json");
  return {
    environment: { NODE_OPTIONS: `--import=${fileURLToPath(import.meta.url)}`, [variable]: file },
    report: async ({ process: { pid } }) => {
      rmSync(file, { force: true });
      process.kill(pid ?? 0, "SIGUSR2");
      await until("the loop's report", () => existsSync(file));
      return JSON.parse(readFileSync(file, "utf8")) as LoopReport;
    },
  };
}

function watch(file: string): void {
  const delays = monitorEventLoopDelay({ resolution: everyMs });
  delays.enable();
  const turns = createHistogram();
  let before = turnClock();
  setInterval(() => {
    const now = turnClock();
    // Whole microseconds, as a histogram counts.
    turns.record(Math.max(1, Math.round((now - before) * 1000)));
    before = now;
  }, everyMs).unref();
  process.on("SIGUSR2", () => {
    const report: LoopReport = { delayMs: delays.max / 1e6, turnMs: turns.max / 1e3 };
    writeFileSync(`${file}.new`, JSON.stringify(report));
    renameSync(`${file}.new`, file);
    delays.reset();
    turns.reset();
  });
}

/** ms of processor time of the main thread, or of the clock. */
function turnClock(): number {
  const ran = existsSync("/proc/self/schedstat")
    ? Number(readFileSync("/proc/self/schedstat", "utf8").split(" ")[0])
    : 0;
  return ran > 0 ? ran / 1e6 : performance.now();
}

const file = process.env[variable];
if (file !== undefined && isMainThread) watch(file);
