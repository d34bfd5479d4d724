// Collects a request's body in one buffer as it arrives: concatenated at the end, 32 MiB blocked the event loop for 30 ms.
import { errorCodes, type FastifyRequest } from "fastify";
import { GatewayError } from "../../core/errors.ts";

/** Bytes for a body whose length is not announced; doubled as it grows. */
const firstBytes = 64 * 1024;

/** Errors: as the framework's own parsers have them; `invalid_request` where the connection ends before the body does. */
export function collectBody({ raw, headers, routeOptions: { bodyLimit } }: FastifyRequest): Promise<Buffer> {
  const announced = Number(headers["content-length"] ?? 0);
  return new Promise((resolve, reject) => {
    if (announced > bodyLimit) return reject(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    let body = Buffer.allocUnsafe(announced || firstBytes);
    let length = 0;
    const take = (chunk: Buffer): void => {
      const needed = length + chunk.length;
      if (needed > bodyLimit) {
        raw.off("data", take);
        return reject(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
      }
      if (needed > body.length) body = Buffer.concat([body], Math.min(bodyLimit, Math.max(needed, 2 * body.length)));
      chunk.copy(body, length);
      length = needed;
    };
    raw.on("data", take);
    raw.once("end", () => resolve(body.subarray(0, length)));
    raw.once("error", (cause) =>
      reject(new GatewayError("invalid_request", "the connection ended before the body did", { cause })),
    );
  });
}
