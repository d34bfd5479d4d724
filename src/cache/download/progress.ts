// What a pull tells about itself while it goes on. Pure.

import { blobName, type HubFile } from "../layout/select.ts";

export interface PullProgress {
  /** Path in the repository; empty while resolving. */
  readonly file: string;
  /** `sha256:…`, or `sha1:…` (git's) for a small file outside LFS; empty while resolving. */
  readonly digest: string;
  /** Bytes of this file. */
  readonly completed: number;
  readonly total: number;
  /** Bytes of the whole model. What an earlier try left counts as completed. */
  readonly totalCompleted: number;
  readonly totalBytes: number;
  /** From the network, smoothed; 0 while nothing can be said. */
  readonly bytesPerSecond: number;
  /** For the rest of the whole model; null while nothing can be said. */
  readonly secondsLeft: number | null;
  readonly phase: "resolving" | "downloading" | "verifying" | "linking";
}

export const resolving: PullProgress = {
  file: "",
  digest: "",
  completed: 0,
  total: 0,
  totalCompleted: 0,
  totalBytes: 0,
  bytesPerSecond: 0,
  secondsLeft: null,
  phase: "resolving",
};

/** A file with so many bytes there, of a model with so many. */
export function progressOf(file: HubFile, completed: number, totalCompleted: number, totalBytes: number): PullProgress {
  const digest = `${file.sha256 === undefined ? "sha1" : "sha256"}:${blobName(file)}`;
  return {
    file: file.path,
    digest,
    completed,
    total: file.size,
    totalCompleted,
    totalBytes,
    bytesPerSecond: 0,
    secondsLeft: totalCompleted === totalBytes ? 0 : null,
    phase: "downloading",
  };
}

export function bytesOf(files: readonly { readonly size: number }[]): number {
  return files.reduce((sum, file) => sum + file.size, 0);
}
