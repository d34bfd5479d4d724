// The ends that a request for speech may come to before its answer: the client's, the gateway's, the engine's.
import { toGatewayError } from "../../core/errors.ts";
import { whileOpen } from "../while-open.ts";

/** As {@link whileOpen}, but what is wrong with the request itself is said also where the gateway's moment came first. */
export function until<T>(
  moment: AbortSignal,
  left: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return whileOpen(moment, left, work, (error) =>
    ["cancelled", "upstream_failed", "engine_failed"].includes(toGatewayError(error).code),
  );
}

/** Whether it is the engine that has ended, and not refused: it is started again by whoever asks for it next. */
export function isEnd(error: unknown): boolean {
  const { code, cause } = toGatewayError(error);
  return code === "engine_failed" || (code === "upstream_failed" && cause !== undefined);
}
