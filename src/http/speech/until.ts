// The ends that a request for speech may come to before its answer: the client's, the gateway's, the engine's.
import { GatewayError, toGatewayError } from "../../core/errors.ts";

/** Runs `work` with that signal. Errors: `shutting_down` where the gateway's moment came first, and those of `work`. */
export async function until<T>(
  moment: AbortSignal,
  left: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = (): GatewayError => new GatewayError("shutting_down", "the gateway is stopping");
  if (moment.aborted) throw over();
  // Not AbortSignal.any: what listens to a signal that lives as long as the program is never forgotten there.
  const either = new AbortController();
  const end = (): void => either.abort();
  left.addEventListener("abort", end);
  moment.addEventListener("abort", end);
  if (left.aborted) end();
  try {
    return await work(either.signal);
  } catch (error) {
    const cut = ["cancelled", "upstream_failed", "engine_failed"].includes(toGatewayError(error).code);
    throw cut && moment.aborted && !left.aborted ? over() : error;
  } finally {
    left.removeEventListener("abort", end);
    moment.removeEventListener("abort", end);
  }
}

/** Whether it is the engine that has ended, and not refused: it is started again by whoever asks for it next. */
export function isEnd(error: unknown): boolean {
  const { code, cause } = toGatewayError(error);
  return code === "engine_failed" || (code === "upstream_failed" && cause !== undefined);
}
