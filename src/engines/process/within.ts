// Waits for work, but not longer than so many milliseconds; the work continues. The wait alone keeps no process from its end.
import { setTimeout as delay } from "node:timers/promises";

/** The outcome; null after that time. */
export async function within<T>(work: Promise<T>, ms: number): Promise<T | null> {
  const timer = new AbortController();
  try {
    return await Promise.race([work, delay(ms, null, { signal: timer.signal, ref: false })]);
  } finally {
    timer.abort();
  }
}
