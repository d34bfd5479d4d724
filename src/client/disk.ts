// Disk use of the models, and deletion of what nothing uses.
import type { CollectedBody, DiskBody } from "../../schemas/disk.ts";
import type { CallOptions, Transport } from "./transport.ts";

export interface DiskCalls {
  /** Every model with its size, and the sums. */
  report(options?: CallOptions): Promise<DiskBody>;
  /** What garbage collection would delete, and why; with `dryRun: false` it is deleted. */
  collect(options?: CallOptions & { readonly dryRun?: boolean }): Promise<CollectedBody>;
}

export function diskCalls(transport: Transport): DiskCalls {
  return {
    report: (options = {}) => transport.json("/api/models/disk", options),
    collect: ({ dryRun = true, signal } = {}) =>
      transport.json("/api/models/gc", { method: "POST", query: { dryRun }, signal }),
  };
}
