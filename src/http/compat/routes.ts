// The family compatible with OpenAI's chat completions: bodies and answers pass through untouched but for the model's name.
import type { FastifyInstance } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { readBoolean, readString, scanBody, spliceBody } from "../body-scan.ts";
import type { Catalogue, ModelView } from "../catalogue.ts";
import type { Edits } from "../edits/edits.ts";
import { type ExchangeDeps, runGeneration, type Translator } from "../exchange.ts";
import { installFamily } from "../family.ts";
import { createDoneWatch } from "../sse.ts";

/** Routes whose stream ends in `data: [DONE]`. */
const generationPaths = ["/chat/completions", "/completions"] as const;

export interface CompatRoutesDeps extends ExchangeDeps {
  readonly catalogue: Catalogue;
  readonly edits: Edits;
  /** What `/props` tells of the router. */
  readonly routerReady: () => boolean;
}

export function compatRoutes(app: FastifyInstance, deps: CompatRoutesDeps): void {
  installFamily(app, "compat");
  for (const path of generationPaths) {
    app.post<{ Body: Buffer }>(path, (request, reply) => {
      const { model, stream, body } = prepare(request.body, deps.catalogue);
      return runGeneration(deps, reply, { model, stream, body, path: `/v1${path}`, translator: passThrough() });
    });
  }
  app.get("/models", () => ({ object: "list", data: deps.catalogue.list().map((view) => modelEntry(view)) }));
  app.get<{ Params: { "*": string } }>("/models/*", (request) => {
    const { id } = deps.catalogue.resolve(request.params["*"]);
    const view = deps.catalogue.list().find((entry) => entry.model.id === id);
    if (!view) throw new GatewayError("model_not_found", `model '${id}' not found`);
    return modelEntry(view);
  });
}

/** The OpenAI fields, the interface's own, and llama.cpp's `status.value`, which web front ends read. */
function modelEntry({ model, contextLength, loaded, status }: ModelView): object {
  return {
    id: model.id,
    object: "model",
    created: Math.floor(model.modifiedAt / 1000),
    owned_by: model.repo.slice(0, model.repo.indexOf("/")),
    ...(contextLength === null ? {} : { context_length: contextLength }),
    ...(model.nCtxTrain === null ? {} : { n_ctx_train: model.nCtxTrain }),
    loaded,
    status: { value: status },
  };
}

interface Prepared {
  readonly model: CachedModel;
  readonly stream: boolean;
  readonly body: Uint8Array;
}

function prepare(body: Buffer | undefined, catalogue: Catalogue): Prepared {
  if (!body || body.length === 0)
    throw new GatewayError("invalid_request", "the body is empty; a JSON object is expected");
  const scan = scanBody(body, ["model", "stream"]);
  if (!scan.ok)
    throw new GatewayError("invalid_request", `the body is no JSON object: it goes wrong at byte ${scan.position}`);
  const span = scan.members.get("model");
  const name = readString(body, span);
  if (span === undefined || name === undefined || name === "")
    throw new GatewayError("invalid_request", "model is missing or no string");
  const stream = scan.members.get("stream");
  if (stream && stream.kind !== "boolean" && stream.kind !== "null")
    throw new GatewayError("invalid_request", "stream must be true or false");
  const model = catalogue.resolve(name);
  const { id } = model;
  return {
    model,
    stream: readBoolean(body, stream) ?? false,
    body: name === id ? body : spliceBody(body, span, JSON.stringify(id)),
  };
}

/** How the engine ends a stream that it cannot finish. */
const errorMark = Buffer.from('data: {"error"');

/** A stream passes as it comes, watched for its end mark; any other answer is kept until it is whole. */
function passThrough(): Translator {
  const watch = createDoneWatch();
  const kept: Buffer[] = [];
  let streaming = false;
  let told = false;
  return {
    family: "compat",
    begin: (contentType) => {
      streaming = contentType.startsWith("text/event-stream");
      return streaming
        ? { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", "x-accel-buffering": "no" }
        : null;
    },
    chunk: (chunk) => {
      if (streaming) {
        watch.push(chunk);
        told ||= chunk.includes(errorMark);
        return chunk;
      }
      kept.push(chunk);
      return null;
    },
    end: () => {
      if (!streaming) return Buffer.concat(kept);
      // Without its end mark a stream was cut, however orderly the connection was closed.
      // The engine has said why: a second word from us would hide it.
      return watch.done() || told
        ? null
        : new GatewayError("upstream_failed", "the engine broke off before the answer was whole");
    },
  };
}
