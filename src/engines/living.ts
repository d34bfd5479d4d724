// The process groups that this process has started and that may still live. Whatever ends this process, short of a KILL,
// they end with it: each is in a group of its own, so no signal of the terminal reaches them.
import { systemCode } from "../core/errors.ts";

const living = new Set<number>();

/** Counts a group among the living; call the result once it is gone. */
export function noteGroup(pid: number): () => void {
  if (living.size === 0) process.on("exit", killLiving);
  living.add(pid);
  return () => {
    living.delete(pid);
    if (living.size === 0) process.off("exit", killLiving);
  };
}

/** KILL to a whole group; one that is gone is no error. */
export function killGroup(pid: number): void {
  try {
    process.kill(process.platform === "win32" ? pid : -pid, "SIGKILL");
  } catch (error) {
    // EPERM is what macOS says of a group in which only zombies are left.
    if (!["ESRCH", "EPERM"].includes(systemCode(error) ?? "")) throw error;
  }
}

function killLiving(): void {
  for (const pid of living) killGroup(pid);
}
