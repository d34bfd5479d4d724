// What the models take on the disk, and deleting what of it serves nobody.
import type { CollectedBody, DiskBody } from "../../schemas/disk.ts";
import type { CallOptions, Transport } from "./transport.ts";

export interface DiskCalls {
  /** Every model with its size, and the sums. */
  report(options?: CallOptions): Promise<DiskBody>;
  /** What collecting would delete, and why; with `dryRun: false` it is deleted. */
  collect(options?: CallOptions & { readonly dryRun?: boolean }): Promise<CollectedBody>;
}

export function diskCalls(transport: Transport): DiskCalls {
  return {
    report: (options = {}) => transport.json("/api/models/disk", options),
    collect: ({ dryRun = true, signal } = {}) =>
      transport.json("/api/models/gc", { method: "POST", query: { dryRun }, signal }),
  };
}
