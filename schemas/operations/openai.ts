// The operations of the family compatible with OpenAI's API and Anthropic's messages.
import {
  chatCompletedSchema,
  chatCompletionSchema,
  completedSchema,
  completionSchema,
  embeddedSchema,
  embeddingsSchema,
  engineAnswerSchema,
  healthSchema,
  messagesSchema,
  modelEntrySchema,
  modelListSchema,
  modelNameSchema,
  rerankSchema,
  responsesSchema,
  successSchema,
  tokensCountedSchema,
} from "../openai.ts";
import { body, events, json, ok, textSchema } from "./contents.ts";
import { generationErrors } from "./errors.ts";
import type { Operation } from "./operation.ts";

const common = { family: "compat", key: "required" } as const;
const chat = { ...common, scope: "chat" } as const;

const streamed = "Whole, or with `stream: true` as server-sent events that end in `data: [DONE]`.";

export const compatOperations: readonly Operation[] = [
  {
    ...chat,
    id: "chatCompletions",
    method: "POST",
    path: "/chat/completions",
    summary: "Chat",
    request: body(json(chatCompletionSchema)),
    responses: [ok(streamed, json(chatCompletedSchema), events(textSchema))],
    errors: generationErrors,
  },
  {
    ...chat,
    id: "completions",
    method: "POST",
    path: "/completions",
    summary: "Continue a prompt",
    request: body(json(completionSchema)),
    responses: [ok(streamed, json(completedSchema), events(textSchema))],
    errors: generationErrors,
  },
  {
    ...chat,
    id: "embeddings",
    method: "POST",
    path: "/embeddings",
    summary: "Embed texts",
    description: "The model's preset needs `embeddings: true` and a `pooling`.",
    request: body(json(embeddingsSchema)),
    responses: [ok("A vector per text.", json(embeddedSchema))],
    errors: [...generationErrors, "not_supported"],
  },
  {
    ...chat,
    id: "responses",
    method: "POST",
    path: "/responses",
    summary: "Respond, in the shape of OpenAI's responses",
    request: body(json(responsesSchema)),
    responses: [
      ok("Whole, or with `stream: true` as server-sent events.", json(engineAnswerSchema), events(textSchema)),
    ],
    errors: [...generationErrors, "not_supported"],
  },
  {
    ...chat,
    id: "messages",
    dialect: "messages",
    method: "POST",
    path: "/messages",
    summary: "Respond, in the shape of Anthropic's messages",
    request: body(json(messagesSchema)),
    responses: [
      ok("Whole, or with `stream: true` as server-sent events.", json(engineAnswerSchema), events(textSchema)),
    ],
    errors: [...generationErrors, "not_supported"],
  },
  {
    ...chat,
    id: "countTokens",
    dialect: "messages",
    method: "POST",
    path: "/messages/count_tokens",
    summary: "Count the tokens of a message",
    request: body(json(messagesSchema)),
    responses: [ok("How many.", json(tokensCountedSchema))],
    errors: [...generationErrors, "not_supported"],
  },
  {
    ...chat,
    id: "models",
    method: "GET",
    path: "/models",
    summary: "The models",
    responses: [ok("All of them.", json(modelListSchema))],
    errors: [],
  },
  ...(
    [
      ["rerank", "/rerank"],
      ["reranking", "/reranking"],
    ] as const
  ).map(
    ([id, path]): Operation => ({
      ...chat,
      id,
      method: "POST",
      path,
      summary: "Rank documents by how well they fit a query",
      description: "The model's preset needs `reranking: true`.",
      request: body(json(rerankSchema)),
      responses: [ok("The ranking.", json(engineAnswerSchema))],
      errors: [...generationErrors, "not_supported"],
    }),
  ),
  {
    ...common,
    id: "loadModel",
    method: "POST",
    path: "/models/load",
    summary: "Load a model, in llama.cpp's words",
    description: "Answers once the request is taken; the list says when it is loaded.",
    request: body(json(modelNameSchema)),
    responses: [ok("It is taken.", json(successSchema))],
    errors: ["model_not_found"],
  },
  {
    ...common,
    id: "unloadModel",
    method: "POST",
    path: "/models/unload",
    summary: "Unload a model, in llama.cpp's words",
    request: body(json(modelNameSchema)),
    responses: [ok("It is not loaded.", json(successSchema))],
    errors: ["model_not_found", "router_unavailable", "engine_missing", "engine_failed", "wait_timeout"],
  },
  {
    ...chat,
    id: "model",
    method: "GET",
    path: "/models/{model}",
    summary: "One model",
    parameters: {
      model: { type: "string", description: "OWNER/NAME:TAG, its slash as it is or escaped." },
    },
    responses: [ok("That model.", json(modelEntrySchema))],
    errors: ["model_not_found"],
  },
  {
    ...chat,
    id: "health",
    method: "GET",
    path: "/health",
    summary: "Check whether models can answer",
    responses: [ok("They can.", json(healthSchema))],
    errors: ["router_unavailable"],
  },
];
