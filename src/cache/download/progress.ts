// What a pull reports while it runs: bytes, their rate and the time left. Pure: the time comes in as data.

import type { CachedFile } from "../layout/layout.ts";

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
  /** From the network, smoothed; 0 while it is not known. */
  readonly bytesPerSecond: number;
  /** For the rest of the whole model; null while it is not known. */
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
export function progressOf(
  { path, blob, size }: CachedFile,
  completed: number,
  totalCompleted: number,
  totalBytes: number,
): PullProgress {
  return {
    file: path,
    digest: `${blob.length === 64 ? "sha256" : "sha1"}:${blob}`,
    completed,
    total: size,
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

/** Over so many samples an old rate fades to a third. */
const memory = 20;

/** `sampleMs`: shorter samples would measure how bytes are bundled. */
export function createPace(start: number, sampleMs = 200) {
  let rate: number | null = null;
  let since = start;
  let waiting = 0;

  function sample(now: number): void {
    const elapsed = now - since;
    if (elapsed < sampleMs) return;
    const seen = (waiting * 1000) / elapsed;
    rate = rate === null ? seen : rate + (seen - rate) * (1 - Math.exp(-elapsed / (memory * sampleMs)));
    since = now;
    waiting = 0;
  }

  return {
    /** Bytes that came over the network, at a time in milliseconds. */
    add(bytes: number, now: number): void {
      waiting += bytes;
      sample(now);
    },
    /** Whole; 0 while it is not known. */
    bytesPerSecond(now: number): number {
      sample(now);
      return Math.round(rate ?? 0);
    },
  };
}

/** Whole seconds for the rest, rounded up; null if the rate is not known. */
export function secondsLeft(bytes: number, bytesPerSecond: number): number | null {
  if (bytes <= 0) return 0;
  return bytesPerSecond > 0 ? Math.ceil(bytes / bytesPerSecond) : null;
}
