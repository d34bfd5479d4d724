// Ollama's chat and generate, on top of the engine's completions; with nothing to answer, loading and unloading.

import type { FastifyInstance, FastifyReply } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import { isForEmbeddings } from "../../core/gguf-facts.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { clientLeft } from "../client-left.ts";
import { runGeneration } from "../exchange.ts";
import { encodeJson } from "../long-texts.ts";
import { type AnswerShape, rfc3339, streamedAnswer, wholeAnswer } from "./answers.ts";
import { type ChatEnd, type ChatRecord, chatEnd } from "./chat-records.ts";
import { parseChatRequest } from "./chat-request.ts";
import type { NativeRoutesDeps } from "./deps.ts";
import { type JsonObject, taken } from "./fields.ts";
import { asChatChunk, generateRecord } from "./generate-records.ts";
import { parseGenerateRequest } from "./generate-request.ts";
import { requireCapabilities } from "./model-facts.ts";
import type { CommonRequest, Need } from "./options.ts";

/** Images come in it. */
const chatBody = { config: { body: "chat" } } as const;

export function generationRoutes(app: FastifyInstance, deps: NativeRoutesDeps): void {
  app.post("/chat", chatBody, (request, reply) => {
    const chat = taken(parseChatRequest(request.body));
    return answer(deps, reply, chat, {
      path: "/v1/chat/completions",
      upstream: chat.upstream,
      read: (chunk) => chunk,
      write: (record) => record,
    });
  });
  app.post("/generate", chatBody, (request, reply) => {
    const generate = taken(parseGenerateRequest(request.body));
    return answer(deps, reply, generate, {
      path: generate.path,
      upstream: generate.upstream,
      read: generate.path === "/v1/chat/completions" ? (chunk) => chunk : asChatChunk,
      write: generateRecord,
    });
  });
}

interface Question extends CommonRequest {
  readonly purpose: "chat" | "generate" | "load" | "unload";
  readonly needs: readonly Need[];
}

interface Wording extends Pick<AnswerShape, "read" | "write"> {
  readonly path: string;
  readonly upstream: JsonObject;
}

async function answer(
  deps: NativeRoutesDeps,
  reply: FastifyReply,
  question: Question,
  { path, upstream, read, write }: Wording,
): Promise<unknown> {
  const model = deps.catalogue.resolve(question.model);
  const done = (reason: ChatEnd["done_reason"]): ChatRecord => chatEnd(question.model, rfc3339(), reason);
  if (question.purpose === "unload") {
    await deps.edits.eject(model.id, { by: "http:keep_alive", signal: clientLeft(reply) });
    return write(done("unload"));
  }
  if (question.purpose !== "load" && isForEmbeddings(model.architecture ?? "", model.pooling))
    throw new GatewayError("not_capable", `"${question.model}" does not support ${question.purpose}`);
  await requireCapabilities(model, question.model, question.needs);
  if (question.purpose === "load") {
    await load(deps, model, question, clientLeft(reply));
    return write(done("load"));
  }
  const shape: AnswerShape = { model: question.model, topLogprobs: question.topLogprobs, read, write };
  await runGeneration(deps, reply, {
    model,
    // The engine stops at once when the client of a stream leaves.
    stream: true,
    body: encodeJson({ ...upstream, model: model.id }, reply.request.body),
    path,
    translator: question.stream ? streamedAnswer(shape) : wholeAnswer(shape),
    keepAlive: question.keepAlive,
    ...(question.numCtx === undefined ? {} : { contextSize: question.numCtx }),
  });
  return reply;
}

async function load(
  deps: NativeRoutesDeps,
  model: CachedModel,
  { numCtx, keepAlive }: CommonRequest,
  signal: AbortSignal,
): Promise<void> {
  const lease = await deps.chatContext.acquire(model, numCtx, signal);
  deps.idle.keep(model.upstreamId, keepAlive);
  lease.release();
}
