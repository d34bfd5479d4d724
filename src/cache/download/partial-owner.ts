// Who writes an unfinished file: which gateway, in which process, and whether it may still be at it. Touches no cache.
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { uptime } from "node:os";
import { systemCode } from "../../core/errors.ts";

/** A process, as far as one can be told from another. */
export interface Owner {
  /** The start of the system that it runs on. */
  readonly boot: string;
  /** Where its process id means something: containers have their own. */
  readonly space: string;
  readonly pid: number;
  /** Id of the gateway, that is of its state folder, which one process has at a time; empty where it has none. */
  readonly gateway: string;
}

/**
 * How an owner stands to us. `ours`: this gateway, whose earlier processes have ended; `dead`: another one whose process has
 * ended; `alive`: its process runs; `unknown`: its process cannot be seen from here, as in another container or host.
 */
export type Standing = "ours" | "dead" | "alive" | "unknown";

/** This process. */
export function thisOwner(gateway = ""): Owner {
  // Where the system does not name its start, the time of it does; a change of the clock only makes it look later.
  const boot = systemText(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8")) ?? bootTime();
  return { boot, space: systemText(() => readlinkSync("/proc/self/ns/pid")) ?? "", pid: process.pid, gateway };
}

export function standingOf(owner: Owner | undefined, self: Owner): Standing {
  if (!owner) return "unknown";
  if (owner.gateway !== "" && owner.gateway === self.gateway) return "ours";
  if (owner.boot !== self.boot || owner.space !== self.space) return "unknown";
  if (owner.pid !== self.pid) return isRunning(owner.pid) ? "alive" : "dead";
  // Two gateways in one process, as a program that embeds them may have them.
  return owner.gateway === self.gateway ? "ours" : "dead";
}

const writerPattern = /^([0-9a-f]{8})-(\d+)-[0-9a-f]{8}$/;

/** A name that nothing else has, for a file that this process writes: it says whose it is where no journal does, or yet. */
export function writerName(): string {
  return `${markOf(thisOwner())}-${process.pid}-${randomBytes(4).toString("hex")}`;
}

/** How the process that made such a name stands to us; `unknown` for any other name. */
export function standingOfWriter(name: string): Standing {
  const [, mark, pid] = writerPattern.exec(name) ?? [];
  if (mark !== markOf(thisOwner())) return "unknown";
  if (Number(pid) === process.pid) return "ours";
  return isRunning(Number(pid)) ? "alive" : "dead";
}

function markOf({ boot, space }: Owner): string {
  return createHash("sha256").update(`${boot} ${space}`).digest("hex").slice(0, 8);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}

function bootTime(): string {
  return `at ${Math.round((Date.now() / 1000 - uptime()) / 30)}`;
}

function systemText(read: () => string): string | undefined {
  try {
    return read().trim();
  } catch {
    // Only Linux has these files.
    return undefined;
  }
}
