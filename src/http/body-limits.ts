// How many bytes each route's body may have: by what comes in it, and by who may send it.
import type { FastifyContextConfig } from "fastify";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What comes in the body: a `chat` has images in it, a `document` thousands of models. Absent: a few fields. */
    readonly body?: "chat" | "document";
  }
}

const fields = 1 << 20;
const document = 4 << 20;

/** Without a key anybody may send it: a text to speak, some forty pages of it. */
const keyless = 1 << 18;

/** `chat`: bytes that a chat may have, which no other body may have more of. */
export function bodyLimitOf(config: FastifyContextConfig | undefined, chat: number): number {
  if (config?.licenseKey !== undefined) return Math.min(chat, keyless);
  if (config?.body === "chat") return chat;
  return Math.min(chat, config?.body === "document" ? document : fields);
}
