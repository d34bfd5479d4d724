// On shutdown, rejects requests that still wait for a model: no byte of their responses has been sent.
import { stoppingError } from "../core/errors.ts";

/** Aborts `wait` when the client leaves, and at the stop: then its error is `shutting_down`. */
export async function whileOpen<T>(
  stopping: AbortSignal,
  left: AbortSignal,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (stopping.aborted) throw stoppingError();
  // Not AbortSignal.any: what listens to a signal that lives as long as the program is never forgotten there.
  const either = new AbortController();
  const give = (): void => either.abort();
  left.addEventListener("abort", give);
  stopping.addEventListener("abort", give);
  if (left.aborted) give();
  try {
    return await wait(either.signal);
  } catch (error) {
    if (stopping.aborted && !left.aborted) throw stoppingError();
    throw error;
  } finally {
    left.removeEventListener("abort", give);
    stopping.removeEventListener("abort", give);
  }
}
