// Ollama's chat and generate, on top of the engine's completions; with nothing to answer, loading and unloading.

import type { FastifyReply } from "fastify";
import {
  nativeChatRecordSchema,
  nativeChatSchema,
  nativeGenerateRecordSchema,
  nativeGenerateSchema,
} from "../../../schemas/ollama.ts";
import { json, lines, ok } from "../../../schemas/route.ts";
import { GatewayError } from "../../core/errors.ts";
import { isForEmbeddings } from "../../core/gguf-facts.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { type ModelWishes, withinScope } from "../auth/within-scope.ts";
import { runGeneration } from "../proxy/exchange.ts";
import { clientLeft } from "../server/client-left.ts";
import { encodeJson } from "../server/long-texts.ts";
import { type Route, route } from "../server/route.ts";
import { generationErrors } from "../server/route-errors.ts";
import { type AnswerShape, rfc3339, streamedAnswer, wholeAnswer } from "./answers.ts";
import type { NativeRoutesDeps } from "./deps.ts";
import { requireCapabilities } from "./model-facts.ts";
import { type ChatRecord, chatEnd } from "./wire/chat-records.ts";
import { modelNameOf, objectOf } from "./wire/fields.ts";
import { asChatChunk, generateRecord } from "./wire/generate-records.ts";
import { keepsForNoTime } from "./wire/options.ts";
import { type ParsedRequest, parseChatRequest, parseGenerateRequest } from "./wire/requests.ts";

const zeroEjects =
  "Below `/alpha/api` `keep_alive: 0` unloads it whatever else the body has, and nothing is generated; below `/api` the answer comes first, as in Ollama.";
const inPieces = "A record per line, or with `stream: false` one.";

/** Images come in it. */
const config = { body: "chat", scope: "chat", anyMediaType: true, errors: generationErrors } as const;

export const generationRoutes: readonly Route<NativeRoutesDeps>[] = [
  route({
    method: "POST",
    url: "/chat",
    config,
    schema: {
      operationId: "nativeChat",
      summary: "Chat, as Ollama does",
      description: `No messages: loads the model, or with \`keep_alive: 0\` unloads it. ${zeroEjects}`,
      body: json(nativeChatSchema),
      response: ok(inPieces, lines(nativeChatRecordSchema), json(nativeChatRecordSchema)),
    },
    handler: (deps: NativeRoutesDeps, { body }, reply) => {
      if (deps.zeroEjects && keepsForNoTime(body)) return eject(deps, reply, modelNameOf(objectOf(body)), (end) => end);
      return answer(deps, reply, parseChatRequest(body), (record) => record);
    },
  }),
  route({
    method: "POST",
    url: "/generate",
    config,
    schema: {
      operationId: "nativeGenerate",
      summary: "Complete a prompt, as Ollama does",
      description: `No prompt: loads the model, or with \`keep_alive: 0\` unloads it. ${zeroEjects}`,
      body: json(nativeGenerateSchema),
      response: ok(inPieces, lines(nativeGenerateRecordSchema), json(nativeGenerateRecordSchema)),
    },
    handler: (deps: NativeRoutesDeps, { body }, reply) => {
      if (deps.zeroEjects && keepsForNoTime(body))
        return eject(deps, reply, modelNameOf(objectOf(body)), generateRecord);
      return answer(deps, reply, parseGenerateRequest(body), generateRecord);
    },
  }),
];

/** Answers with one object, streamed or not, as Ollama does. */
async function eject(
  deps: NativeRoutesDeps,
  reply: FastifyReply,
  name: string,
  write: (record: ChatRecord) => object,
): Promise<object> {
  withinScope(reply.request, { keepAlive: { kind: "seconds", seconds: 0 } });
  await deps.edits.eject(name);
  return write(chatEnd(name, rfc3339(), "unload"));
}

async function answer(
  deps: NativeRoutesDeps,
  reply: FastifyReply,
  question: ParsedRequest,
  write: AnswerShape["write"],
): Promise<unknown> {
  const wishes = withinScope(reply.request, { contextSize: question.numCtx, keepAlive: question.keepAlive });
  if (question.purpose === "unload") return eject(deps, reply, question.model, write);
  const model = deps.catalog.resolve(question.model);
  if (question.purpose !== "load" && isForEmbeddings(model.architecture ?? "", model.pooling))
    throw new GatewayError("not_capable", `"${question.model}" does not support ${question.purpose}`);
  await requireCapabilities(() => deps.catalog.view(model.id), question.model, question.needs);
  if (question.purpose === "load") {
    await load(deps, model, wishes, clientLeft(reply));
    return write(chatEnd(question.model, rfc3339(), "load"));
  }
  const { path, upstream } = question;
  const read: AnswerShape["read"] = path === "/v1/chat/completions" ? (chunk) => chunk : asChatChunk;
  const shape: AnswerShape = { model: question.model, topLogprobs: question.topLogprobs, read, write };
  runGeneration(deps, reply, {
    model,
    // The engine stops at once when the client of a stream leaves.
    stream: true,
    body: encodeJson({ ...upstream, model: model.id }, reply.request.body),
    path,
    translator: question.stream ? streamedAnswer(shape) : wholeAnswer(shape),
    ...wishes,
  });
  return reply;
}

async function load(
  deps: NativeRoutesDeps,
  model: CachedModel,
  { contextSize, keepAlive }: Required<ModelWishes>,
  signal: AbortSignal,
): Promise<void> {
  const lease = await deps.chatContext.acquire(model, contextSize, signal);
  deps.scheduler.keep(model.upstreamId, keepAlive);
  lease.release();
}
