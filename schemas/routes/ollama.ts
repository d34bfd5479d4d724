// Schemas of the routes compatible with Ollama's API.

import {
  nativeChatRecordSchema,
  nativeChatSchema,
  nativeCopySchema,
  nativeEmbeddedSchema,
  nativeEmbeddingSchema,
  nativeEmbeddingsSchema,
  nativeEmbedSchema,
  nativeGenerateRecordSchema,
  nativeGenerateSchema,
  nativeModelSchema,
  nativePsSchema,
  nativePullRecordSchema,
  nativePullSchema,
  nativeShownSchema,
  nativeShowSchema,
  nativeTagsSchema,
  nativeVersionSchema,
} from "../ollama.ts";
import { json, lines, ok } from "../route.ts";

const zeroEjects =
  "Below `/alpha/api` `keep_alive: 0` unloads it whatever else the body has, and nothing is generated; below `/api` the answer comes first, as in Ollama.";
const inPieces = "A record per line, or with `stream: false` one.";

export const ollamaSchemas = {
  nativeChat: {
    operationId: "nativeChat",
    summary: "Chat, as Ollama does",
    description: `No messages: loads the model, or with \`keep_alive: 0\` unloads it. ${zeroEjects}`,
    body: json(nativeChatSchema),
    response: ok(inPieces, lines(nativeChatRecordSchema), json(nativeChatRecordSchema)),
  },
  nativeGenerate: {
    operationId: "nativeGenerate",
    summary: "Complete a prompt, as Ollama does",
    description: `No prompt: loads the model, or with \`keep_alive: 0\` unloads it. ${zeroEjects}`,
    body: json(nativeGenerateSchema),
    response: ok(inPieces, lines(nativeGenerateRecordSchema), json(nativeGenerateRecordSchema)),
  },
  nativeTags: {
    operationId: "nativeTags",
    summary: "List the models, as Ollama does",
    response: ok("All of them.", json(nativeTagsSchema)),
  },
  nativePs: {
    operationId: "nativePs",
    summary: "List the loaded models",
    response: ok("Those that are loaded.", json(nativePsSchema)),
  },
  nativeShow: {
    operationId: "nativeShow",
    summary: "Get the details of a model",
    body: json(nativeShowSchema),
    response: ok("Its details.", json(nativeShownSchema)),
  },
  nativeDelete: {
    operationId: "nativeDelete",
    summary: "Delete a model or an alias",
    body: json(nativeModelSchema),
    response: ok("It is deleted."),
  },
  nativeCopy: {
    operationId: "nativeCopy",
    summary: "Give a model an alias",
    body: json(nativeCopySchema),
    response: ok("The model answers to that name too."),
  },
  nativeVersion: {
    operationId: "nativeVersion",
    summary: "Get the version of this API",
    response: ok("The version.", json(nativeVersionSchema)),
  },
  nativePull: {
    operationId: "nativePull",
    summary: "Pull a model",
    description: "Ends once the router lists the model. A client that leaves cancels the pull that it asked for.",
    body: json(nativePullSchema),
    response: ok(
      "A record per line, or with `stream: false` the last.",
      lines(nativePullRecordSchema),
      json(nativePullRecordSchema),
    ),
  },
  nativeEmbed: {
    operationId: "nativeEmbed",
    summary: "Embed texts, as Ollama does",
    body: json(nativeEmbedSchema),
    response: ok("A vector per text.", json(nativeEmbeddedSchema)),
  },
  nativeEmbeddings: {
    operationId: "nativeEmbeddings",
    summary: "Embed one text, as Ollama does",
    body: json(nativeEmbeddingsSchema),
    response: ok("Its vector.", json(nativeEmbeddingSchema)),
  },
} as const;
