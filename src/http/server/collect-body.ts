// How many bytes each route's body may have, and its collection in one buffer as it arrives: concatenated at the end, 32 MiB blocked
// the event loop for 30 ms.
import type { FastifyContextConfig, FastifyRequest } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import { documentBounds } from "../../desired/document/bounds.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What comes in the body: a `chat` has images in it. Absent: a few fields, a text to speak, a document. */
    readonly body?: "chat";
  }
}

/** Parsed within 15 ms whatever it contains, as no license key is needed: forty pages of text to speak, or 500 models. */
const small = documentBounds.bytes;

/** `chat`: bytes that a chat may have, which no other body may have more of. */
export function bodyLimitOf(config: FastifyContextConfig | undefined, chat: number): number {
  return config?.licenseKey === undefined && config?.body === "chat" ? chat : Math.min(chat, small);
}

/** Bytes for a body whose length is not announced; doubled as it grows. */
const firstBytes = 64 * 1024;

/** Errors: `body_too_large`; `invalid_request` where the connection ends before the body does. */
export function collectBody(
  { raw, headers, routeOptions: { bodyLimit, config } }: FastifyRequest,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const announced = Number(headers["content-length"] ?? 0);
  if (announced > bodyLimit) return done(tooLarge(bodyLimit, config));
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
    else if (needed > bodyLimit) return settle(tooLarge(bodyLimit, config));
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

function tooLarge(limit: number, { body }: FastifyContextConfig): GatewayError {
  const settable = body === "chat" ? ": --body-limit sets it" : "";
  return new GatewayError(
    "body_too_large",
    `the body is larger than the ${limit} bytes that are taken here${settable}`,
  );
}
