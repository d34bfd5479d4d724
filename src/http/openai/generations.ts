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
import { events, json, ok, type RouteSchema, textSchema } from "../../../schemas/route.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Edits } from "../../commands/edits.ts";
import { withinScope } from "../auth/within-scope.ts";
import { runGeneration } from "../proxy/exchange.ts";
import type { ExchangeDeps } from "../proxy/generation.ts";
import { type Route, route } from "../server/route.ts";
import { generationErrors } from "../server/route-errors.ts";
import { passThrough, type StreamKind } from "./pass-through.ts";
import { type CompatRequest, readRequest } from "./request.ts";
import { completeResponses } from "./responses-stream.ts";

export interface CompatRoutesDeps extends ExchangeDeps {
  readonly catalog: Catalog;
  readonly edits: Edits;
  /** For `/health`. */
  readonly routerReady: () => boolean;
}

interface Generation {
  readonly url: string;
  /** The engine has the route below `/v1`, too. */
  readonly isVersioned?: true;
  /** How its stream ends; absent: it answers in one piece, whatever the body has of `stream`. */
  readonly stream?: StreamKind;
  readonly dialect?: "messages";
  /** Every model can do it. */
  readonly isBasic?: true;
  readonly schema: RouteSchema;
}

/** The body is passed on byte by byte: only a few members of it are read. */
function generation({ url, isVersioned, stream: kind, dialect, isBasic, schema }: Generation): Route<CompatRoutesDeps> {
  return route({
    method: "POST",
    url,
    config: {
      // Images and whole documents come in it.
      body: "chat",
      scope: "chat",
      errors: isBasic ? generationErrors : [...generationErrors, "not_supported"],
      ...(dialect && { dialect }),
    },
    schema,
    handler: (deps: CompatRoutesDeps, request, reply) => {
      const run = ({ model, body, stream, ...wishes }: CompatRequest): void => {
        const translator = passThrough(kind ?? dialect ?? "done");
        runGeneration(deps, reply, {
          model,
          body,
          stream: stream && kind !== undefined,
          path: isVersioned ? `/v1${url}` : url,
          translator: kind === "responses" ? completeResponses(translator, model.id) : translator,
          ...withinScope(request, wishes),
        });
      };
      const asked = readRequest(request.body as Buffer | undefined, deps.catalog);
      return asked instanceof Promise ? asked.then(run) : run(asked);
    },
  });
}

const streamed = "Whole, or with `stream: true` as server-sent events";
const stream = events(textSchema);
const engineStream = ok(`${streamed}.`, json(engineAnswerSchema), stream);

function ranking(name: string): Route<CompatRoutesDeps> {
  return generation({
    url: `/${name}`,
    isVersioned: true,
    schema: {
      operationId: name,
      summary: "Rank documents by how well they fit a query",
      description: "The model's preset needs `reranking: true`.",
      body: json(rerankSchema),
      response: ok("The ranking.", json(engineAnswerSchema)),
    },
  });
}

/** Of the same shape with a version in the path and without. */
const shared = [
  generation({
    url: "/chat/completions",
    isVersioned: true,
    stream: "done",
    isBasic: true,
    schema: {
      operationId: "chatCompletions",
      summary: "Create a chat completion",
      body: json(chatCompletionSchema),
      response: ok(`${streamed} that end in \`data: [DONE]\`.`, json(chatCompletedSchema), stream),
    },
  }),
  generation({
    url: "/responses",
    isVersioned: true,
    stream: "responses",
    schema: {
      operationId: "responses",
      summary: "Create a response, as OpenAI's API does",
      body: json(responsesSchema),
      response: engineStream,
    },
  }),
  ranking("rerank"),
  ranking("reranking"),
];

/** OpenAI's, Anthropic's, and the ranking that other servers have beside them. */
export const compatGenerations: readonly Route<CompatRoutesDeps>[] = [
  ...shared,
  generation({
    url: "/completions",
    isVersioned: true,
    stream: "done",
    isBasic: true,
    schema: {
      operationId: "completions",
      summary: "Complete a prompt",
      body: json(completionSchema),
      response: ok(`${streamed} that end in \`data: [DONE]\`.`, json(completedSchema), stream),
    },
  }),
  generation({
    url: "/embeddings",
    isVersioned: true,
    schema: {
      operationId: "embeddings",
      summary: "Embed texts",
      description: "The model's preset needs `embeddings: true` and a `pooling`.",
      body: json(embeddingsSchema),
      response: ok("A vector per text.", json(embeddedSchema)),
    },
  }),
  generation({
    url: "/messages",
    isVersioned: true,
    stream: "messages",
    dialect: "messages",
    schema: {
      operationId: "messages",
      summary: "Create a message, as Anthropic's API does",
      body: json(messagesSchema),
      response: engineStream,
    },
  }),
  generation({
    url: "/messages/count_tokens",
    isVersioned: true,
    dialect: "messages",
    schema: {
      operationId: "countTokens",
      summary: "Count the tokens of a message",
      body: json(messagesSchema),
      response: ok("The number of tokens.", json(tokensCountedSchema)),
    },
  }),
];

/** A route of llama.cpp's own. */
function engine(url: string, operationId: string, summary: string, kind?: StreamKind): Route<CompatRoutesDeps> {
  const response = kind ? engineStream : ok("The engine's answer.", json(engineAnswerSchema));
  const schema = { operationId, summary, body: json(engineRequestSchema), response };
  return generation({ url, schema, ...(kind && { stream: kind }) });
}

/** What llama.cpp serves without a version: its own, and those of the above that have the same shape there. */
export const llamaGenerations: readonly Route<CompatRoutesDeps>[] = [
  ...shared.map(unversioned),
  engine("/completion", "engineCompletion", "Complete a prompt, as llama.cpp does", "llama"),
  engine("/completions", "engineCompletions", "Complete a prompt, as llama.cpp does", "llama"),
  engine("/infill", "engineInfill", "Fill a gap, as llama.cpp does", "llama"),
  engine("/embedding", "engineEmbedding", "Embed a text, as llama.cpp does"),
  engine("/embeddings", "engineEmbeddings", "Embed texts, as llama.cpp does"),
  engine("/tokenize", "tokenize", "Turn a text into tokens"),
  engine("/detokenize", "detokenize", "Turn tokens into a text"),
  engine("/apply-template", "applyTemplate", "Turn messages into a prompt"),
];

/** The same route in the family without a version. */
export function unversioned<D>(original: Route<D>): Route<D> {
  const { schema } = original;
  return { ...original, schema: { ...schema, operationId: `${schema.operationId}Unversioned` } };
}
