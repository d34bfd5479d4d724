// On shutdown, rejects requests that still wait for a model: no byte of their responses has been sent.
import { stoppingError } from "../core/errors.ts";

/** Aborts `wait` when the client leaves, and at the stop: `shutting_down` then replaces errors that `isCut` takes for its doing. */
export async function whileOpen<T>(
  stopping: AbortSignal,
  left: AbortSignal,
  wait: (signal: AbortSignal) => Promise<T>,
  isCut: (error: unknown) => boolean = () => true,
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
    if (stopping.aborted && !left.aborted && isCut(error)) throw stoppingError();
    throw error;
  } finally {
    left.removeEventListener("abort", give);
    stopping.removeEventListener("abort", give);
  }
}
