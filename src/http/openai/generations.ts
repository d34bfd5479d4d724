// The routes whose requests go to a model's own process, and how each one's stream ends.

import type { ServerResponse } from "node:http";
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
import type { Catalog } from "../../catalog/catalog.ts";
import type { Edits } from "../../commands/edits.ts";
import { toGatewayError } from "../../core/errors.ts";
import type { KeyScope } from "../../keys/key-list.ts";
import { noModel } from "../../metrics/requests.ts";
import { withinScope } from "../auth/within-scope.ts";
import { runGeneration } from "../proxy/exchange.ts";
import type { ExchangeDeps, Generation as Wanted } from "../proxy/generation.ts";
import { refuseRaw } from "../server/raw-reply.ts";
import { type Route, routesOf } from "../server/route.ts";
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

export const { get, post } = routesOf<CompatRoutesDeps>();

interface Generation extends Pick<RouteSchema, "operationId" | "summary" | "description"> {
  /** The engine's; the family's prefix has the version. */
  readonly path: string;
  /** How its stream ends; absent: it answers in one piece, whatever the body has of `stream`. */
  readonly stream?: StreamKind;
  readonly dialect?: "messages";
  /** Every model can do it. */
  readonly isBasic?: true;
  /** The tokens in its answer are not computed. */
  readonly isCount?: true;
  readonly request: Schema;
  readonly answer: Schema;
}

/** The body is passed on byte by byte: only a few members of it are read. */
function generation({
  path,
  stream: kind,
  dialect,
  isBasic,
  isCount,
  request,
  answer,
  ...text
}: Generation): Route<CompatRoutesDeps> {
  const route = path.replace(/^\/v1/, "");
  return post(route, {
    config: {
      // Images and whole documents come in it.
      body: "chat",
      scope: "chat",
      errors: isBasic ? generationErrors : [...generationErrors, "not_supported"],
      ...(dialect && { dialect }),
    },
    ...text,
    body: json(request),
    response: kind ? ok(streamed(kind), json(answer), events(textSchema)) : ok("The answer.", answer),
    handler: (deps, request, reply) => {
      reply.hijack();
      respond(deps, (request.body as Buffer | undefined) ?? Buffer.alloc(0), request.keyScope, reply.raw);
    },
    plain: respond,
  });

  function respond(deps: CompatRoutesDeps, body: Buffer, scope: KeyScope | null, response: ServerResponse): void {
    const run = (asked: CompatRequest): void => runGeneration(deps, response, generationOf(asked, scope));
    const refuse = (thrown: unknown): void => {
      const error = toGatewayError(thrown);
      if (error.status >= 500) deps.onFailure(error, path);
      deps.meters.of(route, noModel).ended(error.status);
      refuseRaw(response, dialect ?? "compat", error);
    };
    try {
      const asked = readRequest(body, deps.catalog);
      if (asked instanceof Promise) asked.then(run).catch(refuse);
      else run(asked);
    } catch (error) {
      refuse(error);
    }
  }

  function generationOf(asked: CompatRequest, scope: KeyScope | null): Wanted {
    const { model, body, stream } = asked;
    const { contextSize, keepAlive } = withinScope(scope, asked);
    const translator = passThrough(kind ?? dialect ?? "done", !isCount);
    return {
      model,
      body,
      stream: stream && kind !== undefined,
      path,
      route,
      translator: kind === "responses" ? completeResponses(translator, model.id) : translator,
      contextSize,
      keepAlive,
    };
  }
}

function streamed(kind: StreamKind): string {
  const end = kind === "done" ? " that end in `data: [DONE]`" : "";
  return `Whole, or with \`stream: true\` as server-sent events${end}.`;
}

const ranking = {
  summary: "Rank documents by how well they fit a query",
  description: "The model's preset needs `reranking: true`.",
  request: rerankSchema,
  answer: engineAnswerSchema,
};

/** Of the same shape with a version in the path and without. */
const shared = [
  generation({
    path: "/v1/chat/completions",
    operationId: "chatCompletions",
    summary: "Create a chat completion",
    request: chatCompletionSchema,
    answer: chatCompletedSchema,
    stream: "done",
    isBasic: true,
  }),
  generation({
    path: "/v1/responses",
    operationId: "responses",
    summary: "Create a response, as OpenAI's API does",
    request: responsesSchema,
    answer: engineAnswerSchema,
    stream: "responses",
  }),
  generation({ path: "/v1/rerank", operationId: "rerank", ...ranking }),
  generation({ path: "/v1/reranking", operationId: "reranking", ...ranking }),
];

/** OpenAI's, Anthropic's, and the ranking that other servers have beside them. */
export const compatGenerations = [
  ...shared,
  generation({
    path: "/v1/completions",
    operationId: "completions",
    summary: "Complete a prompt",
    request: completionSchema,
    answer: completedSchema,
    stream: "done",
    isBasic: true,
  }),
  generation({
    path: "/v1/embeddings",
    operationId: "embeddings",
    summary: "Embed texts",
    description: "The model's preset needs `embeddings: true` and a `pooling`.",
    request: embeddingsSchema,
    answer: embeddedSchema,
  }),
  generation({
    path: "/v1/messages",
    operationId: "messages",
    summary: "Create a message, as Anthropic's API does",
    request: messagesSchema,
    answer: engineAnswerSchema,
    stream: "messages",
    dialect: "messages",
  }),
  generation({
    path: "/v1/messages/count_tokens",
    operationId: "countTokens",
    summary: "Count the tokens of a message",
    request: messagesSchema,
    answer: tokensCountedSchema,
    dialect: "messages",
    isCount: true,
  }),
];

/** A route of llama.cpp's own. */
function engine(path: string, operationId: string, summary: string, stream?: StreamKind): Route<CompatRoutesDeps> {
  const schemas = { request: engineRequestSchema, answer: engineAnswerSchema };
  return generation({ path, operationId, summary, ...schemas, ...(stream && { stream }) });
}

/** What llama.cpp serves without a version: its own, and those of the above that have the same shape there. */
export const llamaGenerations = [
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
