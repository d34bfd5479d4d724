// One file from the hub into the cache's blobs.
import type { HubClient } from "../../hub/client.ts";
import type { BlobOrder } from "./store-blob.ts";
import { storeBlob } from "./store-blob.ts";
import { defaultTuning, type TransferTuning, transfer } from "./transfer.ts";

export interface BlobDownload extends Omit<BlobOrder, "fill" | "recordBytes" | "cloneOf"> {
  readonly client: HubClient;
  readonly commit: string;
  readonly tuning?: DownloadTuning | undefined;
  /** `received`: new bytes from the network; `completed`: how many of this file are there. */
  onBytes(received: number, completed: number): void;
  /** Of the whole pull; 0 while nothing can be said. */
  bytesPerSecond(): number;
}

/** What tests and measurements set; the defaults are for the world. */
export interface DownloadTuning extends Partial<TransferTuning> {
  /** A record of what is there after so many bytes. */
  readonly recordBytes?: number;
}

/** Throws `hub_*` and what storing a blob throws. */
export async function downloadBlob(download: BlobDownload): Promise<void> {
  const { tuning } = download;
  await storeBlob({
    ...download,
    recordBytes: tuning?.recordBytes,
    fill: (target, anew) => transfer({ ...download, ...target, plain: anew, tuning: { ...defaultTuning, ...tuning } }),
  });
}
