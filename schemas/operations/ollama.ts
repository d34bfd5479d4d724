// The operations of the family wire-compatible with Ollama's API.
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
  nativePullRecordSchema,
  nativePullSchema,
  nativeShowSchema,
} from "../ollama.ts";
import { nativePsSchema, nativeShownSchema, nativeTagsSchema, nativeVersionSchema } from "../ollama-models.ts";
import { body, json, lines, ok } from "./contents.ts";
import { changeErrors, generationErrors, pullErrors } from "./errors.ts";
import type { Operation } from "./operation.ts";

const common = { family: "native", key: "required", anyMediaType: true } as const;
const chat = { ...common, scope: "chat" } as const;

const zeroEjects =
  "Below `/alpha/api` `keep_alive: 0` unloads it whatever else the body has, and nothing is generated; below `/api` the answer comes first, as in Ollama.";

/** Routes of Ollama's that are answered by a plain no. */
const absentOperations = (
  [
    ["nativeCreate", "POST", "/create", "make a model from another"],
    ["nativeBlob", "POST", "/blobs/{digest}", "upload a part of a model"],
    ["nativePush", "POST", "/push", "publish a model"],
    ["nativeCloudStatus", "GET", "/status", "the state of a cloud account"],
    ["nativeMe", "POST", "/me", "a cloud account"],
    ["nativeSignOut", "POST", "/signout", "leave a cloud account"],
    ["nativeDropKey", "DELETE", "/user/keys/{key}", "the keys of a cloud account"],
    ["nativeExperimental", "POST", "/experimental/{name}", "what is tried out there"],
  ] as const
).map(([id, method, path, what]): Operation => {
  const parameter = /\{(\w+)\}/.exec(path)?.[1];
  return {
    ...common,
    id,
    method,
    path,
    summary: `Not offered: ${what}`,
    ...(parameter === undefined ? {} : { parameters: { [parameter]: { type: "string" } } }),
    responses: [],
    errors: ["not_supported"],
  };
});

export const nativeOperations: readonly Operation[] = [
  {
    ...chat,
    id: "nativeChat",
    method: "POST",
    path: "/chat",
    summary: "Chat",
    description: `No messages: loads the model, or with \`keep_alive: 0\` unloads it. ${zeroEjects}`,
    request: body(json(nativeChatSchema)),
    responses: [
      ok(
        "A record per line, or with `stream: false` one.",
        lines(nativeChatRecordSchema),
        json(nativeChatRecordSchema),
      ),
    ],
    errors: generationErrors,
  },
  {
    ...chat,
    id: "nativeGenerate",
    method: "POST",
    path: "/generate",
    summary: "Continue a prompt",
    description: `No prompt: loads the model, or with \`keep_alive: 0\` unloads it. ${zeroEjects}`,
    request: body(json(nativeGenerateSchema)),
    responses: [
      ok(
        "A record per line, or with `stream: false` one.",
        lines(nativeGenerateRecordSchema),
        json(nativeGenerateRecordSchema),
      ),
    ],
    errors: generationErrors,
  },
  {
    ...chat,
    id: "nativeTags",
    method: "GET",
    path: "/tags",
    summary: "The models",
    responses: [ok("All of them.", json(nativeTagsSchema))],
    errors: [],
  },
  {
    ...chat,
    id: "nativePs",
    method: "GET",
    path: "/ps",
    summary: "The loaded models",
    responses: [ok("Those that are loaded.", json(nativePsSchema))],
    errors: [],
  },
  {
    ...chat,
    id: "nativeShow",
    method: "POST",
    path: "/show",
    summary: "What is known of a model",
    request: body(json(nativeShowSchema)),
    responses: [ok("Its details.", json(nativeShownSchema))],
    errors: ["model_not_found"],
  },
  {
    ...chat,
    id: "nativeVersion",
    method: "GET",
    path: "/version",
    summary: "The version of this API",
    responses: [ok("The version.", json(nativeVersionSchema))],
    errors: [],
  },
  {
    ...common,
    id: "nativePull",
    method: "POST",
    path: "/pull",
    summary: "Have a model pulled",
    description: "Ends once the router lists it. A client that leaves gives up the pull that it asked for.",
    request: body(json(nativePullSchema)),
    responses: [
      ok(
        "A record per line, or with `stream: false` the last.",
        lines(nativePullRecordSchema),
        json(nativePullRecordSchema),
      ),
    ],
    // Somebody may take it out of the document meanwhile.
    errors: [...pullErrors, "cancelled"],
  },
  {
    ...common,
    id: "nativeDelete",
    method: "DELETE",
    path: "/delete",
    summary: "Delete a model, or take a name off it",
    request: body(json(nativeModelSchema)),
    responses: [ok("It is gone.")],
    errors: [...changeErrors, "cache_unwritable"],
  },
  {
    ...common,
    id: "nativeCopy",
    method: "POST",
    path: "/copy",
    summary: "Give a model another name",
    request: body(json(nativeCopySchema)),
    responses: [ok("It answers to that name too.")],
    errors: changeErrors,
  },
  {
    ...chat,
    id: "nativeEmbed",
    method: "POST",
    path: "/embed",
    summary: "Embed texts",
    request: body(json(nativeEmbedSchema)),
    responses: [ok("A vector per text.", json(nativeEmbeddedSchema))],
    errors: [...generationErrors, "not_supported"],
  },
  {
    ...chat,
    id: "nativeEmbeddings",
    method: "POST",
    path: "/embeddings",
    summary: "Embed one text",
    request: body(json(nativeEmbeddingsSchema)),
    responses: [ok("Its vector.", json(nativeEmbeddingSchema))],
    errors: [...generationErrors, "not_supported"],
  },
  ...absentOperations,
];
