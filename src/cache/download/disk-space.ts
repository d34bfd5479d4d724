// Whether the disk has space for a download, before it begins and while other programs fill the disk too.
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import type { Knowable } from "../../plan/observed.ts";
import { inMiB, reserveBytes } from "../../plan/room.ts";

export type DiskSpace = ReturnType<typeof createDiskSpace>;

const watchMs = 1000;

/** `freeBytes`: undefined if it is not known; then everything fits until the system refuses. */
export function createDiskSpace(freeBytes: () => Promise<number | undefined>) {
  let checkedAt = 0;

  async function requireFree(least: number, needed: number): Promise<void> {
    checkedAt = steadyNow();
    const free = await freeBytes();
    if (free !== undefined && free < least) throw full(needed, free);
  }

  return {
    /** Throws `disk_full` if so many bytes and the reserve do not fit. */
    check: (needed: number): Promise<void> => requireFree(needed + reserveBytes, needed),
    /** While bytes come in: throws `disk_full` if others have eaten into the reserve. Checks once a second. */
    watch: async (left: number): Promise<void> => {
      // Half, as a file takes a little more than its bytes and the check before may have been exact.
      if (steadyNow() - checkedAt >= watchMs) await requireFree(Math.min(left, reserveBytes / 2), left);
    },
    /** The system's own `disk_full`, with how much is missing if that is known. */
    explain: async (error: GatewayError, left: number): Promise<GatewayError> => {
      if (error.code !== "disk_full" || error.neededBytes !== undefined) return error;
      const free = await freeBytes();
      return free === undefined ? error : full(left, free, error);
    },
  };
}

function full(needed: number, free: number, cause?: unknown): GatewayError {
  const lacking = inMiB(Math.max(0, needed + reserveBytes - free));
  return new GatewayError(
    "disk_full",
    `The download needs ${inMiB(needed)}, and ${inMiB(reserveBytes)} stay free; the model cache's disk has ${inMiB(free)}: ${lacking} are missing.`,
    { cause, neededBytes: needed },
  );
}

/** Free bytes on the disk of the folder, or of the nearest one above it that exists. */
export async function readFreeBytes(folder: string): Promise<Knowable<number>> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return { state: "known", value: bavail * bsize };
  } catch (error) {
    if (systemCode(error) === "ENOENT" && dirname(folder) !== folder) return readFreeBytes(dirname(folder));
    return { state: "unknown", why: systemCode(error) ?? String(error) };
  }
}
