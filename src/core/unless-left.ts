// Awaits work, but rejects with `cancelled` when the caller's signal aborts; the work continues.
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
