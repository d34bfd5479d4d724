// What every route family has in common: bodies as bytes where they are passed on, and errors in the family's shape.
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import { collectBody } from "./collect-body.ts";
import { type Dialect, errorHeaders, type Family, renderError } from "./errors.ts";
import { parseAnyBody } from "./long-texts.ts";
import { compileFirst } from "./validate.ts";

/** Sets up an encapsulated scope for a family. Families that pass bodies on get them as bytes, unparsed. */
export function installFamily(app: FastifyInstance, family: Family): void {
  app.removeAllContentTypeParsers();
  if (family === "native") app.setValidatorCompiler(compileFirst);
  if (family === "compat")
    app.addContentTypeParser("application/json", (request, _payload, done) => collectBody(request, done));
  else
    app.addContentTypeParser(
      family === "gateway" ? ["application/json", "application/merge-patch+json"] : "application/json",
      async (request: FastifyRequest) => parseAnyBody(await bodyOf(request)),
    );
  app.addHook("onRequest", ({ headers, raw }, _reply, done) => {
    // The type keeps out a web page's plain form post, and what a page sends has an Origin: without one `curl -d` is fine.
    // Ollama's own clients send JSON under any type or none.
    const isForm = /^multipart\//i.test(headers["content-type"] ?? "");
    if (family === "native" || (headers.origin === undefined && !isForm))
      raw.headers["content-type"] = "application/json";
    done();
  });
  app.setErrorHandler((error, request, reply) =>
    sendError(request.routeOptions.config.dialect ?? family, error, request, reply),
  );
}

function bodyOf(request: FastifyRequest): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    collectBody(request, (error, body) => (error ? reject(error) : resolve(body ?? Buffer.alloc(0))));
  });
}

export function sendError(
  family: Family | Dialect,
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const error = fromFramework(thrown, request);
  if (error.code === "internal") request.log.error({ err: thrown }, "a request failed");
  const { status, body } = renderError(family, error);
  void reply.code(status).headers(errorHeaders(error)).send(body);
}

/** Fastify's own refusals in our catalog. */
function fromFramework(thrown: unknown, request: FastifyRequest): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (thrown instanceof RangeError && !("code" in thrown))
    return new GatewayError("invalid_request", "the body is nested too deeply", { cause: thrown });
  const { code, statusCode } = (thrown ?? {}) as Partial<FastifyError>;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  switch (code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new GatewayError("body_too_large", tooLargeMessage(request));
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new GatewayError("unsupported_media_type", mediaTypeMessage(request));
    case "ECONNRESET":
      // Of reading the body; one of our own calls has no status.
      if (statusCode === 400) return new GatewayError("invalid_request", "the connection ended before the body did");
      return new GatewayError("internal", message, { cause: thrown });
    default:
      return code?.startsWith("FST_") && (statusCode ?? 500) < 500
        ? new GatewayError("invalid_request", message)
        : new GatewayError("internal", message, { cause: thrown });
  }
}

function tooLargeMessage({ routeOptions: { bodyLimit, config } }: FastifyRequest): string {
  const settable = config.body === "chat" ? ": --body-limit sets it" : "";
  return `the body is larger than the ${bodyLimit} bytes that are taken here${settable}`;
}

const mediaTypes = ["application/json", "application/merge-patch+json", "multipart/form-data"] as const;

function mediaTypeMessage({ server, headers }: FastifyRequest): string {
  const expected = mediaTypes.filter((type) => server.hasContentTypeParser(type)).join(" or ");
  const given = headers["content-type"];
  return given === undefined
    ? `the body has no Content-Type: ${expected} is expected`
    : `the body is ${JSON.stringify(given.slice(0, 80))}: ${expected} is expected`;
}
