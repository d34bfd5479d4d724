// Room on the disk for sound that was made sooner than its listeners take it: files without a name in the state folder, bounded
// together, as whoever asks for speech needs no license key and may leave what he asked for unread.
import type { FileHandle } from "node:fs/promises";
import { GatewayError } from "../../core/errors.ts";
import { openUnnamed } from "../../desired/atomic-file.ts";
import { reserveBytes } from "../../plan/room.ts";

export interface Spool {
  open(): Promise<FileHandle>;
  /** Before so many bytes are written. Throws `disk_full` where all files together have too much, or the disk too little room. */
  take(bytes: number): Promise<void>;
  /** Once they are not needed any more. */
  giveBack(bytes: number): void;
}

/** `limitBytes`: of all files together. `freeBytes`: of the folder's disk; undefined where nobody knows. */
export function createSpool(options: {
  readonly folder: string;
  readonly limitBytes: number;
  readonly freeBytes: (folder: string) => Promise<number | undefined>;
}): Spool {
  const { folder, limitBytes } = options;
  let taken = 0;
  return {
    open: () => openUnnamed(folder),
    take: async (bytes) => {
      if (taken + bytes > limitBytes)
        throw new GatewayError("disk_full", `sound that nobody listens to has ${limitBytes} bytes of the disk already`);
      taken += bytes;
      const free = (await options.freeBytes(folder)) ?? Number.POSITIVE_INFINITY;
      if (free >= bytes + reserveBytes) return;
      taken -= bytes;
      throw new GatewayError("disk_full", `${folder} has ${free} bytes left`);
    },
    giveBack: (bytes) => {
      taken -= bytes;
    },
  };
}
