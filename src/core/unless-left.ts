// Awaits work, but no longer than the caller wants to; the work continues.
import { clientLeftError } from "./errors.ts";

/** The outcome of the work, or `cancelled` at once when the signal aborts; a later outcome is ignored. */
export async function unlessLeft<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let leave = (): void => undefined;
  const gone = new Promise<never>((_resolve, reject) => {
    leave = () => reject(clientLeftError());
  });
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    return await Promise.race([work, gone]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** The outcome; null after so many milliseconds. */
export async function within<T>(work: Promise<T>, ms: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
