// What every route family has in common: bodies as bytes where they are passed on, and errors in the family's shape.
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../core/errors.ts";
import { type Family, renderError } from "./errors.ts";

/** Sets up an encapsulated scope for a family. Families that pass bodies on get them as bytes, unparsed. */
export function installFamily(app: FastifyInstance, family: Family): void {
  if (family === "compat") {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  } else {
    app.removeAllContentTypeParsers();
    // Ollama's own clients send JSON under any type or none; for the gateway's own routes the type is what keeps a
    // web page's plain form post out.
    app.addContentTypeParser(
      family === "native" ? "*" : ["application/json", "application/merge-patch+json"],
      { parseAs: "string" },
      (_request, body, done) => {
        try {
          done(null, body === "" ? undefined : JSON.parse(String(body)));
        } catch (error) {
          done(
            new GatewayError(
              "invalid_request",
              `the body is no JSON: ${error instanceof Error ? error.message : "unreadable"}`,
            ),
          );
        }
      },
    );
  }
  app.setErrorHandler((error, request, reply) => sendError(family, error, request, reply));
}

export function sendError(family: Family, thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const error = fromFramework(thrown);
  if (error.code === "internal") request.log.error({ err: thrown }, "a request failed");
  const { status, body } = renderError(family, error);
  void reply.code(status).send(body);
}

/** Fastify's own refusals in our catalogue. */
function fromFramework(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (thrown instanceof RangeError && !("code" in thrown))
    return new GatewayError("invalid_request", "the body is nested too deeply", { cause: thrown });
  const code = (thrown as Partial<FastifyError> | null)?.code ?? "";
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  switch (code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new GatewayError("body_too_large", "the body is larger than --body-limit allows");
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new GatewayError("unsupported_media_type", message);
    case "FST_ERR_VALIDATION":
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
    case "FST_ERR_CTP_EMPTY_JSON_BODY":
      return new GatewayError("invalid_request", message);
    default:
      return new GatewayError("internal", message, { cause: thrown });
  }
}
