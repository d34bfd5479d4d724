// The priority of a thread that does a pull's work.
import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";
import { basename } from "node:path";

/** The lowest: at 5 a thread that woke up for a request still waited 3 ms, a whole turn of this one, for each hundredth chat. */
const niceness = 19;

/** Of the calling thread. If the machine is busy, requests come first: on Linux a thread has a priority of its own. */
export function lowerPriority(): void {
  try {
    setPriority(Number(basename(readlinkSync("/proc/thread-self"))), niceness);
  } catch {
    // Elsewhere it competes as any other.
  }
}
