// Schemas of the routes compatible with OpenAI's and Anthropic's APIs, and of llama.cpp's own.
import {
  chatCompletedSchema,
  chatCompletionSchema,
  completedSchema,
  completionSchema,
  embeddedSchema,
  embeddingsSchema,
  engineAnswerSchema,
  engineRequestSchema,
  healthSchema,
  loraScalesSchema,
  messagesSchema,
  modelEntrySchema,
  modelListSchema,
  modelNameSchema,
  rerankSchema,
  responsesSchema,
  successSchema,
  tokensCountedSchema,
} from "../openai.ts";
import { events, json, ok, type RouteSchema, textSchema } from "../route.ts";

const model = { type: "string", minLength: 1 } as const;
const modelQuery = { type: "object", required: ["model"], properties: { model } } as const;
const answer = ok("The engine's answer.", json(engineAnswerSchema));

const streamed = "Whole, or with `stream: true` as server-sent events";
const stream = events(textSchema);
const engineStream = ok(`${streamed}.`, json(engineAnswerSchema), stream);

function ranking(operationId: string): RouteSchema {
  return {
    operationId,
    summary: "Rank documents by how well they fit a query",
    description: "The model's preset needs `reranking: true`.",
    body: json(rerankSchema),
    response: ok("The ranking.", json(engineAnswerSchema)),
  };
}

/** A route of llama.cpp's own. */
function engine(operationId: string, summary: string): RouteSchema {
  const response = ok("The engine's answer.", json(engineAnswerSchema), stream);
  return { operationId, summary, body: json(engineRequestSchema), response };
}

export const openaiSchemas = {
  chatCompletions: {
    operationId: "chatCompletions",
    summary: "Create a chat completion",
    body: json(chatCompletionSchema),
    response: ok(`${streamed} that end in \`data: [DONE]\`.`, json(chatCompletedSchema), stream),
  },
  completions: {
    operationId: "completions",
    summary: "Complete a prompt",
    body: json(completionSchema),
    response: ok(`${streamed} that end in \`data: [DONE]\`.`, json(completedSchema), stream),
  },
  embeddings: {
    operationId: "embeddings",
    summary: "Embed texts",
    description: "The model's preset needs `embeddings: true` and a `pooling`.",
    body: json(embeddingsSchema),
    response: ok("A vector per text.", json(embeddedSchema)),
  },
  responses: {
    operationId: "responses",
    summary: "Create a response, as OpenAI's API does",
    body: json(responsesSchema),
    response: engineStream,
  },
  messages: {
    operationId: "messages",
    summary: "Create a message, as Anthropic's API does",
    body: json(messagesSchema),
    response: engineStream,
  },
  countTokens: {
    operationId: "countTokens",
    summary: "Count the tokens of a message",
    body: json(messagesSchema),
    response: ok("The number of tokens.", json(tokensCountedSchema)),
  },
  rerank: ranking("rerank"),
  reranking: ranking("reranking"),
  engineCompletion: engine("engineCompletion", "Complete a prompt, as llama.cpp does"),
  engineCompletions: engine("engineCompletions", "Complete a prompt, as llama.cpp does"),
  engineInfill: engine("engineInfill", "Fill a gap, as llama.cpp does"),
  engineEmbedding: engine("engineEmbedding", "Embed a text, as llama.cpp does"),
  engineEmbeddings: engine("engineEmbeddings", "Embed texts, as llama.cpp does"),
  tokenize: engine("tokenize", "Turn a text into tokens"),
  detokenize: engine("detokenize", "Turn tokens into a text"),
  applyTemplate: engine("applyTemplate", "Turn messages into a prompt"),
  models: {
    operationId: "models",
    summary: "List the models",
    response: ok("All of them.", json(modelListSchema)),
  },
  loadModel: {
    operationId: "loadModel",
    summary: "Load a model, as llama.cpp does",
    description: "Answers once the request is accepted, as llama.cpp does; the list shows when the model is loaded.",
    body: json(modelNameSchema),
    response: ok("The request is accepted.", json(successSchema)),
  },
  unloadModel: {
    operationId: "unloadModel",
    summary: "Unload a model, as llama.cpp does",
    body: json(modelNameSchema),
    response: ok("The model is not loaded.", json(successSchema)),
  },
  model: {
    operationId: "model",
    summary: "Get a model",
    params: { model: { type: "string", description: "OWNER/NAME:TAG, its slash as it is or escaped." } },
    response: ok("The model.", json(modelEntrySchema)),
  },
  health: {
    operationId: "health",
    summary: "Check whether models can answer",
    response: ok("They can.", json(healthSchema)),
  },
  props: {
    operationId: "props",
    summary: "Get the properties of the router or of a loaded model",
    querystring: {
      type: "object",
      properties: { model: { type: "string", description: "Without it: the router." } },
    },
    response: answer,
  },
  slots: {
    operationId: "slots",
    summary: "Get the parallel slots of a loaded model",
    querystring: modelQuery,
    response: answer,
  },
  loraAdapters: {
    operationId: "loraAdapters",
    summary: "List the adapters of a loaded model",
    querystring: modelQuery,
    response: answer,
  },
  setLoraScales: {
    operationId: "setLoraScales",
    summary: "Set the scales of a loaded model's adapters",
    description: "For all requests to the model, until it is unloaded.",
    querystring: modelQuery,
    // The engine answers success to any list, and takes what it cannot read for 0.
    body: loraScalesSchema,
    response: ok("The scales are set.", json(successSchema)),
  },
} as const;
