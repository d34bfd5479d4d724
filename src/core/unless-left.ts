// Work that goes on without whoever waits for it.
import { GatewayError } from "./errors.ts";

/** The work's outcome, or `cancelled` at once when the signal aborts: what becomes of the work is nobody's then. */
export async function unlessLeft<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let leave = (): void => undefined;
  const gone = new Promise<never>((_resolve, reject) => {
    leave = () => reject(new GatewayError("cancelled", "the client left"));
  });
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    return await Promise.race([work, gone]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
