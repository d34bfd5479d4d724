// The routes whose requests go to a model's own process, and how each one's stream ends.
import type { FastifyInstance } from "fastify";
import { withinScope } from "../auth/within-scope.ts";
import { runGeneration, type Translator } from "../proxy/exchange.ts";
import { sendError } from "../server/family.ts";
import type { CompatRoutesDeps } from "./deps.ts";
import { passThrough, type StreamKind } from "./pass-through.ts";
import { readRequest } from "./request.ts";
import { completeResponses } from "./responses-stream.ts";

interface GenerationRoute {
  readonly path: string;
  /** Where the model's process has it. */
  readonly upstream: string;
  readonly kind: StreamKind;
  /** False: it answers in one piece, whatever the body says of streaming. */
  readonly streams?: false;
}

/** OpenAI's, Anthropic's, and the ranking that other servers have beside them. */
export const compatGenerations: readonly GenerationRoute[] = [
  { path: "/chat/completions", upstream: "/v1/chat/completions", kind: "done" },
  { path: "/completions", upstream: "/v1/completions", kind: "done" },
  { path: "/embeddings", upstream: "/v1/embeddings", kind: "done", streams: false },
  { path: "/responses", upstream: "/v1/responses", kind: "responses" },
  { path: "/messages", upstream: "/v1/messages", kind: "messages" },
  { path: "/messages/count_tokens", upstream: "/v1/messages/count_tokens", kind: "messages", streams: false },
  { path: "/rerank", upstream: "/v1/rerank", kind: "done", streams: false },
  { path: "/reranking", upstream: "/v1/reranking", kind: "done", streams: false },
];

/** What llama.cpp serves without a version: its own, and those of the above that have the same shape there. */
export const llamaGenerations: readonly GenerationRoute[] = [
  ...compatGenerations.filter(({ path, kind }) => kind !== "messages" && !/^\/(?:completions|embeddings)$/.test(path)),
  { path: "/completion", upstream: "/completion", kind: "llama" },
  { path: "/completions", upstream: "/completions", kind: "llama" },
  { path: "/infill", upstream: "/infill", kind: "llama" },
  { path: "/embedding", upstream: "/embedding", kind: "done", streams: false },
  { path: "/embeddings", upstream: "/embeddings", kind: "done", streams: false },
  { path: "/tokenize", upstream: "/tokenize", kind: "done", streams: false },
  { path: "/detokenize", upstream: "/detokenize", kind: "done", streams: false },
  { path: "/apply-template", upstream: "/apply-template", kind: "done", streams: false },
];

/** Images and whole documents come in it. */
const config = { body: "chat" } as const;

export function generationRoutes(
  app: FastifyInstance,
  deps: CompatRoutesDeps,
  routes: readonly GenerationRoute[],
): void {
  for (const { path, upstream, kind, streams = true } of routes) {
    app.post<{ Body: Buffer | undefined }>(
      path,
      // Anthropic's clients read errors of another shape, whoever refuses the request.
      kind === "messages"
        ? { config, errorHandler: (error, request, reply) => sendError("messages", error, request, reply) }
        : { config },
      async (request, reply) => {
        const { model, body, stream, ...wishes } = await readRequest(request.body, deps.catalogue);
        return runGeneration(deps, reply, {
          model,
          body,
          stream: streams && stream,
          path: upstream,
          translator: translatorFor(kind, model.id),
          ...withinScope(request, wishes),
        });
      },
    );
  }
}

function translatorFor(kind: StreamKind, model: string): Translator {
  const translator = passThrough(kind);
  if (kind !== "responses") return translator;
  return completeResponses(translator, { model, createdAt: Math.floor(Date.now() / 1000) });
}
