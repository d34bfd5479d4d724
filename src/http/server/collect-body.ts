// Collects a request's body in one buffer as it arrives: concatenated at the end, 32 MiB blocked the event loop for 30 ms.
import { errorCodes, type FastifyRequest } from "fastify";
import { GatewayError } from "../../core/errors.ts";

/** Bytes for a body whose length is not announced; doubled as it grows. */
const firstBytes = 64 * 1024;

/** Errors: as the framework's own parsers have them; `invalid_request` where the connection ends before the body does. */
export function collectBody(
  { raw, headers, routeOptions: { bodyLimit } }: FastifyRequest,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const announced = Number(headers["content-length"] ?? 0);
  if (announced > bodyLimit) return done(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
  let body: Buffer | null = null;
  let length = 0;
  let isOver = false;
  const settle = (error: Error | null, collected?: Buffer): void => {
    if (isOver) return;
    isOver = true;
    raw.off("data", take);
    done(error, collected);
  };
  const take = (chunk: Buffer): void => {
    const needed = length + chunk.length;
    // Most bodies come in one piece.
    if (needed === announced && length === 0) body = chunk;
    else if (needed > bodyLimit) return settle(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    else {
      body ??= Buffer.allocUnsafe(announced || firstBytes);
      if (needed > body.length) body = Buffer.concat([body], Math.min(bodyLimit, Math.max(needed, 2 * body.length)));
      chunk.copy(body, length);
    }
    length = needed;
  };
  raw.on("data", take);
  raw.on("end", () => settle(null, body?.subarray(0, length) ?? Buffer.alloc(0)));
  raw.on("error", (cause) =>
    settle(new GatewayError("invalid_request", "the connection ended before the body did", { cause })),
  );
}
