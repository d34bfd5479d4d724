// Waits for work, but not longer than so many milliseconds; the work continues.
import { setTimeout as delay } from "node:timers/promises";

/** The outcome; null after that time. */
export async function within<T>(work: Promise<T>, ms: number): Promise<T | null> {
  const timer = new AbortController();
  try {
    return await Promise.race([work, delay(ms, null, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}
