// Whether the disk has room for a download, before it begins and while others fill the disk too.
import { GatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import { inMiB, reserveBytes } from "../../plan/room.ts";

export { reserveBytes } from "../../plan/room.ts";

export interface Room {
  /** Throws `disk_full` where there is not room for so many bytes and the reserve. */
  check(needed: number): Promise<void>;
  /** While bytes come in: throws `disk_full` where others have eaten into the reserve. Looks once a second. */
  watch(left: number): Promise<void>;
  /** The system's own `disk_full`, with how much is missing where that can be told. */
  explain(error: GatewayError, left: number): Promise<GatewayError>;
}

const lookMs = 1000;

/** `freeBytes`: undefined where that cannot be told; then there is room until the system says otherwise. */
export function createRoom(freeBytes: () => Promise<number | undefined>): Room {
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
    async check(needed) {
      const free = await freeBytes();
      if (free !== undefined && free < needed + reserveBytes) throw full(needed, free);
    },
    async watch(left) {
      const now = steadyNow();
      if (now - lookedAt < lookMs) return;
      lookedAt = now;
      const free = await freeBytes();
      // Half, as a file takes a little more than its bytes and the check before may have been exact.
      if (free !== undefined && free < Math.min(left, reserveBytes / 2)) throw full(left, free);
    },
    async explain(error, left) {
      if (error.code !== "disk_full" || error.message.includes("are missing")) return error;
      const free = await freeBytes().catch(() => undefined);
      return free === undefined ? error : full(left, free, error);
    },
  };
}
