// The rate of a transfer, from its last report. Pure.
import type { Progress } from "./actions.ts";

/** Bytes come in many times a second; after so long nothing does. */
const silentMs = 5_000;

/** The rate of a transfer that has stalled is none, whatever it was. */
export function paceNow(progress: Progress | null, ageMs: number): Progress | null {
  if (progress?.bytesPerSecond === undefined || ageMs < silentMs) return progress;
  return { ...progress, bytesPerSecond: 0, secondsLeft: progress.secondsLeft === 0 ? 0 : null };
}
