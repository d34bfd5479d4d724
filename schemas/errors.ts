// The bodies of failed requests, in the shape of each family.

export const gatewayErrorSchema = {
  title: "GatewayError",
  description: "What the gateway's own routes answer with when they refuse or fail.",
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["code", "message"],
      properties: {
        code: { type: "string", description: "For programs: one of the documented codes." },
        message: { type: "string", description: "For people: what is the matter." },
        hint: { type: "string", description: "What to do about it." },
      },
    },
  },
} as const;

export const compatErrorSchema = {
  title: "CompatError",
  description: "The shape of OpenAI's errors. In a stream: a `data:` frame of this shape, and no `[DONE]`.",
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["message", "type", "code"],
      properties: {
        message: { type: "string" },
        type: { type: "string", examples: ["invalid_request_error"] },
        param: { type: ["string", "null"] },
        code: { type: ["string", "null"] },
      },
    },
  },
} as const;

export const nativeErrorSchema = {
  title: "NativeError",
  description: "The shape of Ollama's errors. In a stream: one such line.",
  type: "object",
  required: ["error"],
  properties: { error: { type: "string" } },
} as const;

export const messagesErrorSchema = {
  title: "MessagesError",
  description: "The shape of Anthropic's errors.",
  type: "object",
  required: ["type", "error"],
  properties: {
    type: { const: "error" },
    error: {
      type: "object",
      required: ["type", "message"],
      properties: { type: { type: "string" }, message: { type: "string" } },
    },
  },
} as const;
