// The operations of llama.cpp's own that its web page and other front ends look for, without a version in their path.
import { engineAnswerSchema, engineRequestSchema, loraScalesSchema, successSchema } from "../openai.ts";
import { body, events, json, ok, textSchema } from "./contents.ts";
import { generationErrors } from "./errors.ts";
import { compatOperations } from "./openai.ts";
import type { Operation } from "./operation.ts";

const common = { family: "llama", key: "required" } as const;
const chat = { ...common, scope: "chat" } as const;

/** llama.cpp's shape without a version, OpenAI's with one. */
const ownShape: readonly string[] = ["/completions", "/embeddings"];

/** What the versioned family has too, but for Anthropic's and the one model. */
const unversioned = compatOperations
  .filter(({ dialect, id, path }) => dialect !== "messages" && id !== "model" && !ownShape.includes(path))
  .map((operation): Operation => ({ ...operation, ...common, id: `${operation.id}Unversioned` }));

const engineOperations = (
  [
    ["engineCompletion", "/completion", "Continue a prompt, in llama.cpp's words"],
    ["engineCompletions", "/completions", "Continue a prompt, in llama.cpp's words"],
    ["engineInfill", "/infill", "Fill a gap, in llama.cpp's words"],
    ["engineEmbedding", "/embedding", "Embed a text, in llama.cpp's words"],
    ["engineEmbeddings", "/embeddings", "Embed texts, in llama.cpp's words"],
    ["tokenize", "/tokenize", "Turn a text into tokens"],
    ["detokenize", "/detokenize", "Turn tokens into a text"],
    ["applyTemplate", "/apply-template", "Turn messages into a prompt"],
  ] as const
).map(
  ([id, path, summary]): Operation => ({
    ...chat,
    id,
    method: "POST",
    path,
    summary,
    request: body(json(engineRequestSchema)),
    responses: [ok("The engine's answer.", json(engineAnswerSchema), events(textSchema))],
    errors: [...generationErrors, "not_supported"],
  }),
);

const modelQuery = { type: "object", required: ["model"], properties: { model: { type: "string" } } } as const;

const inspectionErrors = ["invalid_request", "model_not_found", "upstream_failed"] as const;

export const llamaOperations: readonly Operation[] = [
  ...unversioned,
  ...engineOperations,
  {
    ...chat,
    id: "props",
    method: "GET",
    path: "/props",
    summary: "Get the properties of the router or of a loaded model",
    query: { type: "object", properties: { model: { type: "string", description: "Without it: the router." } } },
    responses: [ok("The engine's answer.", json(engineAnswerSchema))],
    errors: inspectionErrors,
  },
  {
    ...common,
    id: "slots",
    method: "GET",
    path: "/slots",
    summary: "Get the parallel slots of a loaded model",
    query: modelQuery,
    responses: [ok("The engine's answer.", json(engineAnswerSchema))],
    errors: [...inspectionErrors, "not_supported"],
  },
  {
    ...common,
    id: "loraAdapters",
    method: "GET",
    path: "/lora-adapters",
    summary: "List the adapters of a loaded model",
    query: modelQuery,
    responses: [ok("The engine's answer.", json(engineAnswerSchema))],
    errors: inspectionErrors,
  },
  {
    ...common,
    id: "setLoraScales",
    method: "POST",
    path: "/lora-adapters",
    summary: "Set the scales of a loaded model's adapters",
    description: "For all requests to the model, until it is unloaded.",
    query: modelQuery,
    request: body(json(loraScalesSchema)),
    responses: [ok("They are set.", json(successSchema))],
    errors: inspectionErrors,
  },
];
