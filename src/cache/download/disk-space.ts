// Whether the disk has space for a download, before it begins and while other programs fill the disk too.
import { GatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import { inMiB, reserveBytes } from "../../plan/room.ts";

export type DiskSpace = ReturnType<typeof createDiskSpace>;

const lookMs = 1000;

/** `freeBytes`: undefined if it is not known; then everything fits until the system refuses. */
export function createDiskSpace(freeBytes: () => Promise<number | undefined>) {
  let lookedAt = steadyNow();

  function full(needed: number, free: number, cause?: unknown): GatewayError {
    const lacking = inMiB(Math.max(0, needed + reserveBytes - free));
    return new GatewayError(
      "disk_full",
      `The download needs ${inMiB(needed)}, and ${inMiB(reserveBytes)} stay free; the model cache's disk has ${inMiB(free)}: ${lacking} are missing.`,
      { cause, neededBytes: needed },
    );
  }

  return {
    /** Throws `disk_full` if so many bytes and the reserve do not fit. */
    async check(needed: number): Promise<void> {
      const free = await freeBytes();
      if (free !== undefined && free < needed + reserveBytes) throw full(needed, free);
    },
    /** While bytes come in: throws `disk_full` if others have eaten into the reserve. Checks once a second. */
    async watch(left: number): Promise<void> {
      const now = steadyNow();
      if (now - lookedAt < lookMs) return;
      lookedAt = now;
      const free = await freeBytes();
      // Half, as a file takes a little more than its bytes and the check before may have been exact.
      if (free !== undefined && free < Math.min(left, reserveBytes / 2)) throw full(left, free);
    },
    /** The system's own `disk_full`, with how much is missing if that is known. */
    async explain(error: GatewayError, left: number): Promise<GatewayError> {
      if (error.code !== "disk_full" || error.neededBytes !== undefined) return error;
      const free = await freeBytes();
      return free === undefined ? error : full(left, free, error);
    },
  };
}
