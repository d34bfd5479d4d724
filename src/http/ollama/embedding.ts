// Ollama's embed and its older embeddings, on top of the engine's embeddings. A text that is too long is cut by tokens.
import { performance } from "node:perf_hooks";
import type { FastifyReply } from "fastify";
import {
  type NativeEmbed,
  nativeEmbeddedSchema,
  nativeEmbeddingSchema,
  nativeEmbeddingsSchema,
  nativeEmbedSchema,
} from "../../../schemas/ollama.ts";
import { ok } from "../../../schemas/route.ts";
import { GatewayError } from "../../core/errors.ts";
import { askInstance } from "../../engines/llama/ask-instance.ts";
import type { EngineAnswer } from "../../engines/llama/ask-server.ts";
import { isRefusal } from "../../engines/llama/upstream.ts";
import type { RequestMeter } from "../../metrics/requests.ts";
import type { Lease } from "../../scheduler/requests.ts";
import { withinScope } from "../auth/within-scope.ts";
import { withCause } from "../proxy/exchange.ts";
import { clientLeft } from "../server/call.ts";
import { renderEngineError } from "../server/errors.ts";
import { encodeJson, largeBytes } from "../server/long-texts.ts";
import { generationErrors } from "../server/route-errors.ts";
import { type NativeRoutesDeps, post } from "./deps.ts";
import { nanoseconds } from "./wire/chat-records.ts";
import { keepAliveOf } from "./wire/requests.ts";

/** Whole documents come in it. */
const config = {
  body: "chat",
  scope: "chat",
  anyMediaType: true,
  errors: [...generationErrors, "not_supported"],
} as const;

export const embeddingRoutes = [
  post("/embed", {
    operationId: "nativeEmbed",
    summary: "Embed texts, as Ollama does",
    body: nativeEmbedSchema,
    response: ok("A vector per text.", nativeEmbeddedSchema),
    config,
    handler: (deps, { body }, reply) => {
      const startedAt = performance.now();
      return embed(deps, reply, body, ({ vectors, tokens, beganAt }) => ({
        model: body.model,
        embeddings: vectors,
        total_duration: nanoseconds(performance.now() - startedAt),
        load_duration: nanoseconds(beganAt - startedAt),
        prompt_eval_count: tokens,
      }));
    },
  }),
  post("/embeddings", {
    operationId: "nativeEmbeddings",
    summary: "Embed one text, as Ollama does",
    body: nativeEmbeddingsSchema,
    response: ok("Its vector.", nativeEmbeddingSchema),
    config,
    handler: (deps, { body }, reply) =>
      embed(deps, reply, { ...body, input: body.prompt ?? "" }, ({ vectors: [embedding = []] }) => ({ embedding })),
  }),
];

interface Embedded {
  readonly vectors: readonly (readonly number[])[];
  readonly tokens: number;
  /** When the model was there, by the monotonic clock. */
  readonly beganAt: number;
}

function embed(
  deps: NativeRoutesDeps,
  reply: FastifyReply,
  { model, input, truncate, dimensions, keep_alive, options }: NativeEmbed,
  write: (embedded: Embedded) => object,
): Promise<object> {
  const cameAt = performance.now();
  const texts = textsOf(input);
  const wishes = { keepAlive: keepAliveOf(keep_alive), contextSize: options?.num_ctx ?? undefined };
  return withModel(deps, reply, model, withinScope(reply.request.keyScope, wishes), async (call, meter) => {
    const beganAt = performance.now();
    if (texts.length === 0) return write({ vectors: [], tokens: 0, beganAt });
    const answer = await ask(call, texts, truncate ?? true);
    if (answer.status === 200) {
      const embedded = read(answer.text, dimensions ?? 0);
      meter.model.addTokens(embedded.tokens, 0);
      meter.wasAnswered(performance.now() - cameAt);
      return write({ ...embedded, beganAt });
    }
    const { status, body } = renderEngineError("native", answer.status, answer.text);
    // That a text is too long is the client's doing; the engine's 500 would be asked for again.
    return reply.code(limitIn(answer) === null ? status : 400).send(body);
  });
}

/** A request to the model's process. */
type CallEngine = (path: string, body: object) => Promise<EngineAnswer>;

const attempts = 3;

/** Several small requests to one loaded model under one lease. */
async function withModel<T>(
  deps: NativeRoutesDeps,
  reply: FastifyReply,
  name: string,
  { keepAlive, contextSize }: ReturnType<typeof withinScope>,
  use: (call: CallEngine, meter: RequestMeter) => Promise<T>,
): Promise<T> {
  const { catalog, chatContext, scheduler, prompts, upstream } = deps;
  const source = reply.request.body;
  const left = clientLeft(reply);
  const model = catalog.resolve(name);
  reply.request.servedModel = model.id;
  const meter = deps.meters.of(reply.request.routeOptions.config.route ?? "", model.id);
  const cameAt = performance.now();
  const permit = await prompts.enter(model.upstreamId, largeBytes(source), left);
  const callOf =
    ({ instance }: Lease): CallEngine =>
    (path, body) => {
      const request = { path, body: encodeJson(body, source), ...(permit && { onRead: permit.send(left) }) };
      return askInstance(upstream, instance, request, left);
    };
  try {
    for (let attempt = 1; ; attempt++) {
      const lease = chatContext.tryAcquire(model, contextSize) ?? (await chatContext.acquire(model, contextSize, left));
      scheduler.keep(model.upstreamId, keepAlive);
      if (attempt === 1) meter.model.queueWait.observe((performance.now() - cameAt) / 1000);
      try {
        return await use(callOf(lease), meter);
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        // Its process ended between our looking and our asking: the next instance is asked.
        if (attempt === attempts || !isRefusal(error)) throw withCause(error, lease);
      } finally {
        lease.release();
      }
      await scheduler.replace(lease.instance);
    }
  } finally {
    permit?.end();
  }
}

async function ask(call: CallEngine, texts: readonly string[], truncate: boolean): Promise<EngineAnswer> {
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
  if (status !== 200) throw new GatewayError("upstream_failed", `the engine does not tokenize (${status})`);
  return (JSON.parse(text) as { readonly tokens: readonly number[] }).tokens;
}

/** How many tokens the model takes at once, by an answer that refuses a longer text; null for any other answer. */
function limitIn({ status, text }: EngineAnswer): number | null {
  if (status === 200) return null;
  const context = /"n_ctx":\s*(\d+)/.exec(text)?.[1];
  // Texts are computed in one batch; only the message has its size.
  const batch = /too large to process.*current batch size: (\d+)/.exec(text)?.[1];
  return Number(context ?? batch ?? 0) || null;
}

function read(text: string, dimensions: number): Omit<Embedded, "beganAt"> {
  const { data, usage } = JSON.parse(text) as {
    readonly data: readonly { readonly index: number; readonly embedding: readonly number[] }[];
    readonly usage?: { readonly prompt_tokens?: number };
  };
  const vectors = data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => cutVector(embedding, dimensions));
  return { vectors, tokens: usage?.prompt_tokens ?? 0 };
}

/** Ollama takes an empty text for none at all. */
export function textsOf(input: NativeEmbed["input"]): readonly string[] {
  return input === "" ? [] : [input ?? []].flat();
}

/** The first dimensions of a vector, at length 1 again, as models trained to be cut need it; 0: all of them. */
export function cutVector(vector: readonly number[], dimensions: number): readonly number[] {
  if (dimensions === 0 || dimensions >= vector.length) return vector;
  const kept = vector.slice(0, dimensions);
  const length = Math.hypot(...kept);
  return length === 0 ? kept : kept.map((value) => value / length);
}

/** Tokens of a text that is too long, cut to a limit; `frame` is what the tokenizer puts around an empty text. */
export function cutTokens(tokens: readonly number[], frame: readonly number[], limit: number): readonly number[] {
  if (tokens.length <= limit) return tokens;
  const last = frame.at(-1);
  const closes = last !== undefined && tokens.at(-1) === last && (frame.length > 1 || tokens[0] !== last);
  return closes ? [...tokens.slice(0, limit - 1), last] : tokens.slice(0, limit);
}
