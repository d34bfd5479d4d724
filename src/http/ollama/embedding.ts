// Ollama's embed and its older embeddings, on top of the engine's embeddings. A text that is too long is cut by tokens.

import { performance } from "node:perf_hooks";
import type { FastifyReply } from "fastify";
import {
  nativeEmbeddedSchema,
  nativeEmbeddingSchema,
  nativeEmbeddingsSchema,
  nativeEmbedSchema,
} from "../../../schemas/ollama.ts";
import { json, ok } from "../../../schemas/route.ts";
import { GatewayError } from "../../core/errors.ts";
import { withinScope } from "../auth/within-scope.ts";
import type { EngineAnswer } from "../proxy/ask-instance.ts";
import { clientLeft } from "../server/client-left.ts";
import { renderEngineError } from "../server/errors.ts";
import { type Route, route } from "../server/route.ts";
import { generationErrors } from "../server/route-errors.ts";
import type { NativeRoutesDeps } from "./deps.ts";
import { type CallEngine, withModel } from "./engine-call.ts";
import { nanoseconds } from "./wire/chat-records.ts";
import {
  cutTokens,
  cutVector,
  type NativeEmbed,
  parseEmbeddingsRequest,
  parseEmbedRequest,
} from "./wire/embed-request.ts";

/** Whole documents come in it. */
const config = {
  body: "chat",
  scope: "chat",
  anyMediaType: true,
  errors: [...generationErrors, "not_supported"],
} as const;

export const embeddingRoutes: readonly Route<NativeRoutesDeps>[] = [
  route({
    method: "POST",
    url: "/embed",
    config,
    schema: {
      operationId: "nativeEmbed",
      summary: "Embed texts, as Ollama does",
      body: json(nativeEmbedSchema),
      response: ok("A vector per text.", json(nativeEmbeddedSchema)),
    },
    handler: async (deps: NativeRoutesDeps, { body }, reply) => {
      const embed = parseEmbedRequest(body);
      const startedAt = performance.now();
      const found = await vectorsOf(deps, embed, reply);
      if (!found.ok) return reply.code(found.status).send(found.body);
      return {
        model: embed.model,
        embeddings: found.vectors,
        total_duration: nanoseconds(performance.now() - startedAt),
        load_duration: nanoseconds(found.beganAt - startedAt),
        prompt_eval_count: found.tokens,
      };
    },
  }),
  route({
    method: "POST",
    url: "/embeddings",
    config,
    schema: {
      operationId: "nativeEmbeddings",
      summary: "Embed one text, as Ollama does",
      body: json(nativeEmbeddingsSchema),
      response: ok("Its vector.", json(nativeEmbeddingSchema)),
    },
    handler: async (deps: NativeRoutesDeps, { body }, reply) => {
      const found = await vectorsOf(deps, parseEmbeddingsRequest(body), reply);
      if (!found.ok) return reply.code(found.status).send(found.body);
      return { embedding: found.vectors[0] ?? [] };
    },
  }),
];

interface Vectors {
  readonly ok: true;
  readonly vectors: readonly (readonly number[])[];
  readonly tokens: number;
  /** When the model was there, by the monotonic clock. */
  readonly beganAt: number;
}

interface Refused {
  readonly ok: false;
  readonly status: number;
  readonly body: object;
}

function vectorsOf(deps: NativeRoutesDeps, embed: NativeEmbed, reply: FastifyReply): Promise<Vectors | Refused> {
  const model = deps.catalog.resolve(embed.model);
  const { keepAlive, numCtx, dimensions } = embed;
  const wishes = withinScope(reply.request, { keepAlive, contextSize: numCtx });
  const calls = { ...wishes, source: reply.request.body, signal: clientLeft(reply) };
  return withModel(deps, model, calls, async (call) => {
    const beganAt = performance.now();
    if (embed.texts.length === 0) return { ok: true, vectors: [], tokens: 0, beganAt };
    const answer = await ask(call, embed);
    if (answer.status !== 200) return refusal(answer);
    const { vectors, tokens } = read(answer.text);
    return { ok: true, vectors: vectors.map((vector) => cutVector(vector, dimensions)), tokens, beganAt };
  });
}

async function ask(call: CallEngine, { texts, truncate }: NativeEmbed): Promise<EngineAnswer> {
  const first = await call("/v1/embeddings", { input: texts });
  const limit = truncate ? limitIn(first) : null;
  if (limit === null) return first;
  const frame = await tokensOf(call, "");
  const cut: (readonly number[])[] = [];
  for (const text of texts) cut.push(cutTokens(await tokensOf(call, text), frame, limit));
  return call("/v1/embeddings", { input: cut });
}

async function tokensOf(call: CallEngine, content: string): Promise<readonly number[]> {
  const { status, text } = await call("/tokenize", { content, add_special: true });
  const tokens = status === 200 ? (JSON.parse(text) as { tokens?: unknown }).tokens : undefined;
  if (!Array.isArray(tokens)) throw new GatewayError("upstream_failed", `the engine does not tokenize (${status})`);
  return tokens as readonly number[];
}

interface EngineRefusal {
  readonly error?: { readonly message?: string; readonly n_ctx?: number };
}

/** How many tokens the model takes at once, by an answer that refuses a longer text; null for any other answer. */
function limitIn({ status, text }: EngineAnswer): number | null {
  if (status === 200) return null;
  const { error } = refusalIn(text);
  if (error?.n_ctx !== undefined && error.n_ctx > 0) return error.n_ctx;
  // Texts are computed in one batch; only the message has its size.
  const batch = /too large to process.*current batch size: (\d+)/.exec(error?.message ?? "")?.[1];
  return batch === undefined ? null : Number(batch);
}

function refusalIn(text: string): EngineRefusal {
  try {
    return JSON.parse(text) as EngineRefusal;
  } catch {
    return {};
  }
}

function refusal(answer: EngineAnswer): Refused {
  const { status, body } = renderEngineError("native", answer.status, answer.text);
  // That a text is too long is the client's doing; the engine's 500 would be asked for again.
  return { ok: false, status: limitIn(answer) === null ? status : 400, body };
}

function read(text: string): { readonly vectors: readonly (readonly number[])[]; readonly tokens: number } {
  const body = JSON.parse(text) as {
    readonly data?: readonly { readonly index?: number; readonly embedding?: readonly number[] }[];
    readonly usage?: { readonly prompt_tokens?: number };
  };
  const vectors: (readonly number[])[] = [];
  for (const [at, { index, embedding }] of (body.data ?? []).entries()) vectors[index ?? at] = embedding ?? [];
  return { vectors, tokens: body.usage?.prompt_tokens ?? 0 };
}
