// What a pull reports while it runs: bytes, their rate and the time left.
import { steadyNow } from "../../core/steady.ts";
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

/** Received bytes are reported at most once in so many milliseconds. */
const reportMs = 100;

export type Reporter = ReturnType<typeof createReporter>;

/** Reports the progress of a model's files, one after the other. */
export function createReporter(files: readonly HubFile[], onProgress: (progress: PullProgress) => void) {
  const pace = createPace(steadyNow());
  const totalBytes = files.reduce((sum, { size }) => sum + size, 0);
  const completed = new Map<HubFile, number>();
  let reportedAt = 0;
  let downloadedBytes = 0;

  const left = (): number => [...completed.values()].reduce((rest, bytes) => rest - bytes, totalBytes);

  function report(file: HubFile, bytes: number, phase: PullProgress["phase"] = "downloading"): void {
    const name = blobName(file);
    completed.set(file, bytes);
    reportedAt = steadyNow();
    const bytesPerSecond = pace.bytesPerSecond(reportedAt);
    onProgress({
      file: file.path,
      digest: `${name.length === 64 ? "sha256" : "sha1"}:${name}`,
      completed: bytes,
      total: file.size,
      totalCompleted: totalBytes - left(),
      totalBytes,
      bytesPerSecond,
      secondsLeft: secondsLeft(left(), bytesPerSecond),
      phase,
    });
  }

  return {
    /** So many bytes of the file are there. */
    report,
    /** The same, `received` of them new; not each is reported. */
    receive(file: HubFile, received: number, bytes: number): void {
      const now = steadyNow();
      pace.add(received, now);
      downloadedBytes += received;
      if (bytes === file.size || now - reportedAt >= reportMs) report(file, bytes);
    },
    /** Bytes of the model that are not there. */
    left,
    downloadedBytes: () => downloadedBytes,
  };
}

/** Shorter samples would measure how bytes are bundled. */
const sampleMs = 200;
/** Over so many samples an old rate fades to a third. */
const memory = 20;

export function createPace(start: number) {
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
