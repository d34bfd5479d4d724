// The process groups that this process has started and that may still live. Whatever ends this process, short of a KILL,
// they end with it: each is in a group of its own, so no signal of the terminal reaches them.
import { systemCode } from "../../core/errors.ts";

/** By the leader's number; `left`: the leader has ended, others of its group may live on. */
const living = new Map<number, "led" | "left">();

/** Counts a group among the living; call the result once its leader has ended. */
export function noteGroup(pid: number): () => void {
  if (living.size === 0) process.on("exit", killLiving);
  for (const [other, state] of living) if (state === "left" && !isThere(groupOf(other))) living.delete(other);
  living.set(pid, "led");
  return () => {
    if (isThere(groupOf(pid))) living.set(pid, "left");
    else living.delete(pid);
    if (living.size === 0) process.off("exit", killLiving);
  };
}

/** KILL to a whole group; one that is gone is no error. */
export function killGroup(pid: number): void {
  try {
    process.kill(groupOf(pid), "SIGKILL");
  } catch (error) {
    // EPERM is what macOS says of a group in which only zombies are left.
    if (!["ESRCH", "EPERM"].includes(systemCode(error) ?? "")) throw error;
  }
}

function killLiving(): void {
  for (const [pid, state] of living) {
    // A number is not given away while its group lives: where there is a new process of that number, the group was gone.
    if (state === "led" || !isThere(pid)) killGroup(pid);
  }
}

function groupOf(pid: number): number {
  return process.platform === "win32" ? pid : -pid;
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}
