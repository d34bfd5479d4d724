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
import { isJsonObject } from "../../core/json.ts";
import { withinScope } from "../auth/within-scope.ts";
import { filledObject } from "../json/fill-members.ts";
import { runGeneration } from "../proxy/exchange.ts";
import { clientLeft } from "../server/call.ts";
import { encodeJson } from "../server/long-texts.ts";
import { generationErrors } from "../server/route-errors.ts";
import { type AnswerShape, answerTranslator } from "./answers.ts";
import { type NativeRoutesDeps, post } from "./deps.ts";
import { requireCapabilities } from "./model-facts.ts";
import { asChatChunk, chatEnd, generateRecord } from "./wire/chat-records.ts";
import { keepsForNoTime, type ParsedRequest, parseChatRequest, parseGenerateRequest } from "./wire/requests.ts";

const zeroEjects =
  "Below `/alpha/api` `keep_alive: 0` unloads it whatever else the body has, and nothing is generated; below `/api` the answer comes first, as in Ollama.";
const inPieces = "A record per line, or with `stream: false` one.";

const shared = {
  /** Images come in it. */
  config: { body: "chat", scope: "chat", anyMediaType: true, errors: generationErrors },
  parse: (body: unknown, deps: NativeRoutesDeps): unknown =>
    deps.zeroEjects && isJsonObject(body) && keepsForNoTime(body) ? { model: body["model"], keep_alive: 0 } : body,
} as const;

export const generationRoutes = [
  post("/chat", {
    ...shared,
    operationId: "nativeChat",
    summary: "Chat, as Ollama does",
    description: `No messages: loads the model, or with \`keep_alive: 0\` unloads it. ${zeroEjects}`,
    body: nativeChatSchema,
    response: ok(inPieces, lines(nativeChatRecordSchema), json(nativeChatRecordSchema)),
    handler: (deps, { body }, reply) => answer(deps, reply, parseChatRequest(body), (record) => record),
  }),
  post("/generate", {
    ...shared,
    operationId: "nativeGenerate",
    summary: "Complete a prompt, as Ollama does",
    description: `No prompt: loads the model, or with \`keep_alive: 0\` unloads it. ${zeroEjects}`,
    body: nativeGenerateSchema,
    response: ok(inPieces, lines(nativeGenerateRecordSchema), json(nativeGenerateRecordSchema)),
    handler: (deps, { body }, reply) => answer(deps, reply, parseGenerateRequest(body), generateRecord),
  }),
];

/** A load or unload answers with one object, streamed or not, as Ollama does. */
async function answer(
  deps: NativeRoutesDeps,
  reply: FastifyReply,
  { model: name, purpose, needs, stream, numCtx, topLogprobs, path, upstream, ...asked }: ParsedRequest,
  write: AnswerShape["write"],
): Promise<unknown> {
  const wishes = withinScope(reply.request.keyScope, { contextSize: numCtx, keepAlive: asked.keepAlive });
  if (purpose === "unload") {
    await deps.edits.eject(name);
    return write(chatEnd(name, new Date().toISOString(), "unload"));
  }
  const { model, variant } = deps.catalog.named(name);
  if (purpose !== "load" && isForEmbeddings(model.architecture ?? "", model.pooling))
    throw new GatewayError("not_capable", `"${name}" does not support ${purpose}`);
  const view = needs.length > 0 ? deps.catalog.view(model.id) : undefined;
  if (view) await requireCapabilities(view, name, needs);
  if (purpose === "load") {
    const lease = await deps.chatContext.acquire(model, wishes.contextSize, clientLeft(reply));
    deps.scheduler.keep(model.upstreamId, wishes.keepAlive);
    lease.release();
    return write(chatEnd(name, new Date().toISOString(), "load"));
  }
  const read: AnswerShape["read"] = path === "/v1/chat/completions" ? (chunk) => chunk : asChatChunk;
  reply.hijack();
  runGeneration(deps, reply.raw, {
    model,
    // The engine stops at once when the client of a stream leaves.
    stream: true,
    body: encodeJson({ ...filledObject(upstream, variant), model: model.id }, reply.request.body),
    path,
    route: reply.request.routeOptions.config.route ?? "",
    translator: answerTranslator({ model: name, topLogprobs, stream, read, write }),
    ...wishes,
  });
  return reply;
}
