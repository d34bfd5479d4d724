// What every route family has in common: bodies as bytes where they are passed on, and errors in the family's shape.
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { collectBody } from "./collect-body.ts";
import { type Dialect, errorHeaders, type Family, renderError } from "./errors.ts";
import { parseAnyBody } from "./long-texts.ts";
import { compileFirst } from "./validate.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The body may be YAML too, which comes as its bytes. */
    readonly yaml?: true;
  }
  interface FastifyInstance {
    /** Its message goes to no client. */
    logDefect(error: unknown): void;
  }
}

/** Sets up an encapsulated scope for a family. Families that pass bodies on get them as bytes, unparsed. */
export function installFamily(app: FastifyInstance, family: Family): void {
  app.removeAllContentTypeParsers();
  if (family === "native") app.setValidatorCompiler(compileFirst);
  if (family === "compat")
    app.addContentTypeParser("application/json", (request, _payload, done) => collectBody(request, done));
  else
    app.addContentTypeParser(
      family === "gateway" ? ["application/json", "application/merge-patch+json"] : "application/json",
      (request: FastifyRequest, _payload: unknown, done: (error: Error | null, body?: unknown) => void) =>
        collectBody(request, (error, body = Buffer.alloc(0)) => {
          if (error) done(error);
          else parseAnyBody(body).then((value) => done(null, value), done);
        }),
    );
  if (family === "gateway")
    app.addContentTypeParser(yamlType, (request: FastifyRequest, _payload: unknown, done) => {
      if (request.routeOptions.config.yaml === true) collectBody(request, done);
      else done(new GatewayError("unsupported_media_type", mediaTypeMessage(request)));
    });
  app.addHook("onRequest", ({ headers, raw, routeOptions }, _reply, done) => {
    if (routeOptions.config.yaml === true && yamlPattern.test(headers["content-type"] ?? "")) {
      raw.headers["content-type"] = yamlType;
      return done();
    }
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

export function sendError(
  family: Family | Dialect,
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const error = fromFramework(thrown, request);
  if (error.code === "internal") request.server.logDefect(thrown);
  const { status, body } = renderError(family, error);
  void reply.code(status).headers(errorHeaders(error)).send(body);
}

/** Fastify's own refusals in our catalog. */
function fromFramework(thrown: unknown, request: FastifyRequest): GatewayError {
  if (thrown instanceof GatewayError || !(thrown instanceof Error)) return toGatewayError(thrown);
  const { code, statusCode = 500, message } = thrown as FastifyError;
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE")
    return new GatewayError("unsupported_media_type", mediaTypeMessage(request));
  if (thrown instanceof RangeError && code === undefined)
    return new GatewayError("invalid_request", "the body is nested too deeply", { cause: thrown });
  const isRefusal = code?.startsWith("FST_") && statusCode < 500;
  return isRefusal ? new GatewayError("invalid_request", message) : toGatewayError(thrown);
}

const yamlType = "application/yaml";
/** With the names that it had before RFC 9512. */
const yamlPattern = /^(?:application|text)\/(?:x-)?yaml *(;|$)/i;

const mediaTypes = ["application/json", "application/merge-patch+json", "multipart/form-data"] as const;

function mediaTypeMessage({ server, headers }: FastifyRequest): string {
  const expected = mediaTypes.filter((type) => server.hasContentTypeParser(type)).join(" or ");
  const given = headers["content-type"];
  return given === undefined
    ? `the body has no Content-Type: ${expected} is expected`
    : `the body is ${JSON.stringify(given.slice(0, 80))}: ${expected} is expected`;
}
