// The routes whose requests go to a model's own process, and how each one's stream ends.

import type { RouteSchema } from "../../../schemas/route.ts";
import { openaiSchemas } from "../../../schemas/routes/openai.ts";
import { withinScope } from "../auth/within-scope.ts";
import { runGeneration, type Translator } from "../proxy/exchange.ts";
import { type Route, route } from "../server/route.ts";
import { generationErrors } from "../server/route-errors.ts";
import type { CompatRoutesDeps } from "./deps.ts";
import { passThrough, type StreamKind } from "./pass-through.ts";
import { type CompatRequest, readRequest } from "./request.ts";
import { completeResponses } from "./responses-stream.ts";

interface Generation {
  readonly url: string;
  /** Where the model's process has it. */
  readonly upstream: string;
  readonly kind: StreamKind;
  /** False: it answers in one piece, whatever `stream` in the body is. */
  readonly streams?: false;
  readonly schema: RouteSchema;
  /** Every model can do it. */
  readonly isBasic?: true;
}

/** The body goes on to the byte: nothing is added to the way of a chat but the reading of a few members. */
function generation({ url, upstream, kind, streams, schema, isBasic }: Generation): Route<CompatRoutesDeps> {
  return route({
    method: "POST",
    url,
    config: {
      // Images and whole documents come in it.
      body: "chat",
      scope: "chat",
      errors: isBasic ? generationErrors : [...generationErrors, "not_supported"],
      // Anthropic's clients read errors of another shape, also those of the server itself.
      ...(kind === "messages" ? { dialect: "messages" } : {}),
    },
    schema,
    handler: (deps: CompatRoutesDeps, request, reply) => {
      const run = ({ model, body, stream, ...wishes }: CompatRequest): void =>
        runGeneration(deps, reply, {
          model,
          body,
          stream: stream && streams !== false,
          path: upstream,
          translator: translatorFor(kind, model.id),
          ...withinScope(request, wishes),
        });
      const asked = readRequest(request.body as Buffer | undefined, deps.catalog);
      return asked instanceof Promise ? asked.then(run) : run(asked);
    },
  });
}

const {
  chatCompletions,
  completions,
  embeddings,
  responses,
  messages,
  countTokens,
  rerank,
  reranking,
  engineCompletion,
  engineCompletions,
  engineInfill,
  engineEmbedding,
  engineEmbeddings,
  tokenize,
  detokenize,
  applyTemplate,
} = openaiSchemas;

/** Of the same shape with a version in the path and without. */
const shared = [
  generation({
    url: "/chat/completions",
    upstream: "/v1/chat/completions",
    kind: "done",
    schema: chatCompletions,
    isBasic: true,
  }),
  generation({ url: "/responses", upstream: "/v1/responses", kind: "responses", schema: responses }),
  generation({ url: "/rerank", upstream: "/v1/rerank", kind: "done", schema: rerank, streams: false }),
  generation({ url: "/reranking", upstream: "/v1/reranking", kind: "done", schema: reranking, streams: false }),
];

/** OpenAI's, Anthropic's, and the ranking that other servers have beside them. */
export const compatGenerations: readonly Route<CompatRoutesDeps>[] = [
  ...shared,
  generation({ url: "/completions", upstream: "/v1/completions", kind: "done", schema: completions, isBasic: true }),
  generation({ url: "/embeddings", upstream: "/v1/embeddings", kind: "done", schema: embeddings, streams: false }),
  generation({ url: "/messages", upstream: "/v1/messages", kind: "messages", schema: messages }),
  generation({
    url: "/messages/count_tokens",
    upstream: "/v1/messages/count_tokens",
    kind: "messages",
    schema: countTokens,
    streams: false,
  }),
];

/** What llama.cpp serves without a version: its own, and those of the above that have the same shape there. */
export const llamaGenerations: readonly Route<CompatRoutesDeps>[] = [
  ...shared.map(unversioned),
  generation({ url: "/completion", upstream: "/completion", kind: "llama", schema: engineCompletion }),
  generation({ url: "/completions", upstream: "/completions", kind: "llama", schema: engineCompletions }),
  generation({ url: "/infill", upstream: "/infill", kind: "llama", schema: engineInfill }),
  generation({ url: "/embedding", upstream: "/embedding", kind: "done", schema: engineEmbedding, streams: false }),
  generation({ url: "/embeddings", upstream: "/embeddings", kind: "done", schema: engineEmbeddings, streams: false }),
  generation({ url: "/tokenize", upstream: "/tokenize", kind: "done", schema: tokenize, streams: false }),
  generation({ url: "/detokenize", upstream: "/detokenize", kind: "done", schema: detokenize, streams: false }),
  generation({
    url: "/apply-template",
    upstream: "/apply-template",
    kind: "done",
    schema: applyTemplate,
    streams: false,
  }),
];

/** The same route in the family without a version. */
export function unversioned<D>(original: Route<D>): Route<D> {
  const { schema } = original;
  return { ...original, schema: { ...schema, operationId: `${schema.operationId}Unversioned` } };
}

function translatorFor(kind: StreamKind, model: string): Translator {
  const translator = passThrough(kind);
  if (kind !== "responses") return translator;
  return completeResponses(translator, { model, createdAt: Math.floor(Date.now() / 1000) });
}
