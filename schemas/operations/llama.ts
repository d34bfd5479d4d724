// The operations of llama.cpp's own that its web page and other front ends look for, without a version in their path.
import { engineAnswerSchema, engineRequestSchema, healthSchema } from "../compat.ts";
import { compatOperations } from "./compat.ts";
import { body, events, json, ok, textSchema } from "./contents.ts";
import { generationErrors } from "./errors.ts";
import type { Operation } from "./operation.ts";

const common = { family: "llama", key: "required" } as const;
const chat = { ...common, scope: "chat" } as const;

/** What the versioned family has too, but for Anthropic's and the one model. */
const unversioned = compatOperations
  .filter(({ dialect, id }) => dialect !== "messages" && id !== "model")
  .map((operation): Operation => ({ ...operation, ...common, id: `${operation.id}Unversioned` }));

const engineOperations = (
  [
    ["engineCompletion", "/completion", "Continue a prompt, in llama.cpp's words"],
    ["engineInfill", "/infill", "Fill a gap, in llama.cpp's words"],
    ["engineEmbedding", "/embedding", "Embed a text, in llama.cpp's words"],
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

export const llamaOperations: readonly Operation[] = [
  ...unversioned,
  ...engineOperations,
  {
    ...chat,
    id: "health",
    method: "GET",
    path: "/health",
    summary: "Whether models can answer",
    responses: [ok("They can.", json(healthSchema))],
    errors: ["router_unavailable"],
  },
  {
    ...chat,
    id: "props",
    method: "GET",
    path: "/props",
    summary: "What the router, or the process of a loaded model, says of itself",
    query: { type: "object", properties: { model: { type: "string", description: "Without it: the router." } } },
    responses: [ok("The engine's answer.", json(engineAnswerSchema))],
    errors: [...generationErrors],
  },
];
