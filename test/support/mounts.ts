// Small filesystems of a test's own, where the machine lets it mount: a disk that is full, read-only or away.
import { execFileSync, spawnSync } from "node:child_process";
import type { TestContext } from "node:test";
import { cleanUp } from "./clean-up.ts";
import { until } from "./scratch.ts";

export interface Disk {
  /** Options as `mount` knows them: `remount,ro`. */
  remount(options: string): Promise<void>;
  unmount(): void;
  mount(): void;
}

/** Why nothing can be mounted here; false where it can. */
export const cannotMount = ((): string | false => {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "mounting needs root on Linux";
  try {
    execFileSync("unshare", ["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], { stdio: "ignore" });
    return false;
  } catch {
    return "this sandbox does not mount";
  }
})();

/** A filesystem in memory at a folder that is there; gone again with the test. What it holds is lost when it is unmounted. */
export function mountDisk(t: TestContext, folder: string, size = "8m"): Disk {
  const run = (...args: string[]): void => void execFileSync(args[0] ?? "", args.slice(1), { stdio: "pipe" });
  let mounted = false;
  const disk: Disk = {
    mount: () => {
      run("mount", "-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder);
      mounted = true;
    },
    // Also while somebody looks into it, as a disk that is pulled out.
    unmount: () => {
      if (mounted) run("umount", "-l", folder);
      mounted = false;
    },
    // It is busy while a file of it is being written.
    remount: (options) =>
      until(
        `remounted with ${options}`,
        () => spawnSync("mount", ["-o", options, folder], { stdio: "ignore" }).status === 0,
      ).then(() => undefined),
  };
  disk.mount();
  cleanUp(t, disk.unmount);
  return disk;
}
