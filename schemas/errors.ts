// The bodies of failed requests, in the shape of each family.
import { open, text } from "./shapes.ts";

const textOrNull = { type: ["string", "null"] } as const;

export const gatewayErrorSchema = {
  title: "GatewayError",
  description: "What the gateway's own routes answer with when they refuse or fail.",
  ...open({
    error: open(
      {
        code: text("For programs: one of the documented codes."),
        message: text("For people: what is the matter."),
      },
      { hint: text("What to do about it.") },
    ),
  }),
} as const;

export const compatErrorSchema = {
  title: "CompatError",
  description: "The shape of OpenAI's errors. In a stream: a `data:` frame of this shape, and no `[DONE]`.",
  ...open({
    error: open(
      { message: text(), type: { ...text(), examples: ["invalid_request_error"] }, code: textOrNull },
      { param: textOrNull },
    ),
  }),
} as const;

export const nativeErrorSchema = {
  title: "NativeError",
  description: "The shape of Ollama's errors. In a stream: one such line.",
  ...open({ error: text() }),
} as const;

export const messagesErrorSchema = {
  title: "MessagesError",
  description: "The shape of Anthropic's errors.",
  ...open({ type: { const: "error" }, error: open({ type: text(), message: text() }) }),
} as const;
