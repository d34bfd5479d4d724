// The routes whose requests go to a model's own process, and how each one's stream ends.
import {
  chatCompletedSchema,
  chatCompletionSchema,
  completedSchema,
  completionSchema,
  embeddedSchema,
  embeddingsSchema,
  engineAnswerSchema,
  engineRequestSchema,
  messagesSchema,
  rerankSchema,
  responsesSchema,
  tokensCountedSchema,
} from "../../../schemas/openai.ts";
import { events, json, ok, type RouteSchema, type Schema, textSchema } from "../../../schemas/route.ts";
import { withinScope } from "../auth/within-scope.ts";
import { runGeneration, type Translator } from "../proxy/exchange.ts";
import { type Route, route } from "../server/route.ts";
import { generationErrors } from "../server/route-errors.ts";
import type { CompatRoutesDeps } from "./deps.ts";
import { passThrough, type StreamKind } from "./pass-through.ts";
import { readRequest } from "./request.ts";
import { completeResponses } from "./responses-stream.ts";

interface Generation {
  readonly url: string;
  /** Where the model's process has it. */
  readonly upstream: string;
  readonly kind: StreamKind;
  /** False: it answers in one piece, whatever the body says of streaming. */
  readonly streams?: boolean;
  readonly request: Schema;
  readonly schema: Omit<RouteSchema, "body">;
  /** Whether a model may lack what it takes. */
  readonly isOptional?: true;
}

/** The body goes on to the byte: nothing is added to the way of a chat but the reading of a few members. */
function generation({
  url,
  upstream,
  kind,
  streams = true,
  request,
  schema,
  isOptional,
}: Generation): Route<CompatRoutesDeps> {
  return route({
    method: "POST",
    url,
    config: {
      // Images and whole documents come in it.
      body: "chat",
      scope: "chat",
      errors: isOptional ? [...generationErrors, "not_supported"] : generationErrors,
      // Anthropic's clients read errors of another shape, whoever refuses the request.
      ...(kind === "messages" ? { dialect: "messages" } : {}),
    },
    schema: { ...schema, body: json(request) },
    handler: async (deps: CompatRoutesDeps, request, reply) => {
      const { model, body, stream, ...wishes } = await readRequest(request.body as Buffer | undefined, deps.catalogue);
      return runGeneration(deps, reply, {
        model,
        body,
        stream: streams && stream,
        path: upstream,
        translator: translatorFor(kind, model.id),
        ...withinScope(request, wishes),
      });
    },
  });
}

const streamed = "Whole, or with `stream: true` as server-sent events";
const streamText = events(textSchema);

const completions = generation({
  url: "/completions",
  upstream: "/v1/completions",
  kind: "done",
  request: completionSchema,
  schema: {
    operationId: "completions",
    summary: "Complete a prompt",
    response: ok(`${streamed} that end in \`data: [DONE]\`.`, json(completedSchema), streamText),
  },
});

const embeddings = generation({
  url: "/embeddings",
  upstream: "/v1/embeddings",
  kind: "done",
  streams: false,
  isOptional: true,
  request: embeddingsSchema,
  schema: {
    operationId: "embeddings",
    summary: "Embed texts",
    description: "The model's preset needs `embeddings: true` and a `pooling`.",
    response: ok("A vector per text.", json(embeddedSchema)),
  },
});

const anthropic = [
  generation({
    url: "/messages",
    upstream: "/v1/messages",
    kind: "messages",
    isOptional: true,
    request: messagesSchema,
    schema: {
      operationId: "messages",
      summary: "Create a message, as Anthropic's API does",
      response: ok(`${streamed}.`, json(engineAnswerSchema), streamText),
    },
  }),
  generation({
    url: "/messages/count_tokens",
    upstream: "/v1/messages/count_tokens",
    kind: "messages",
    streams: false,
    isOptional: true,
    request: messagesSchema,
    schema: {
      operationId: "countTokens",
      summary: "Count the tokens of a message",
      response: ok("The number of tokens.", json(tokensCountedSchema)),
    },
  }),
];

/** Of the same shape with a version in the path and without. */
const shared = [
  generation({
    url: "/chat/completions",
    upstream: "/v1/chat/completions",
    kind: "done",
    request: chatCompletionSchema,
    schema: {
      operationId: "chatCompletions",
      summary: "Create a chat completion",
      response: ok(`${streamed} that end in \`data: [DONE]\`.`, json(chatCompletedSchema), streamText),
    },
  }),
  generation({
    url: "/responses",
    upstream: "/v1/responses",
    kind: "responses",
    isOptional: true,
    request: responsesSchema,
    schema: {
      operationId: "responses",
      summary: "Create a response, as OpenAI's API does",
      response: ok(`${streamed}.`, json(engineAnswerSchema), streamText),
    },
  }),
  ...["rerank", "reranking"].map((name) =>
    generation({
      url: `/${name}`,
      upstream: `/v1/${name}`,
      kind: "done",
      streams: false,
      isOptional: true,
      request: rerankSchema,
      schema: {
        operationId: name,
        summary: "Rank documents by how well they fit a query",
        description: "The model's preset needs `reranking: true`.",
        response: ok("The ranking.", json(engineAnswerSchema)),
      },
    }),
  ),
];

/** OpenAI's, Anthropic's, and the ranking that other servers have beside them. */
export const compatGenerations: readonly Route<CompatRoutesDeps>[] = [completions, embeddings, ...anthropic, ...shared];

/** What llama.cpp serves without a version: its own, and those of the above that have the same shape there. */
export const llamaGenerations: readonly Route<CompatRoutesDeps>[] = [
  ...shared.map(unversioned),
  ...(
    [
      ["engineCompletion", "/completion", "llama", "Complete a prompt, as llama.cpp does"],
      ["engineCompletions", "/completions", "llama", "Complete a prompt, as llama.cpp does"],
      ["engineInfill", "/infill", "llama", "Fill a gap, as llama.cpp does"],
      ["engineEmbedding", "/embedding", "done", "Embed a text, as llama.cpp does"],
      ["engineEmbeddings", "/embeddings", "done", "Embed texts, as llama.cpp does"],
      ["tokenize", "/tokenize", "done", "Turn a text into tokens"],
      ["detokenize", "/detokenize", "done", "Turn tokens into a text"],
      ["applyTemplate", "/apply-template", "done", "Turn messages into a prompt"],
    ] as const
  ).map(([operationId, url, kind, summary]) =>
    generation({
      url,
      upstream: url,
      kind,
      streams: kind !== "done",
      isOptional: true,
      request: engineRequestSchema,
      schema: { operationId, summary, response: ok("The engine's answer.", json(engineAnswerSchema), streamText) },
    }),
  ),
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
