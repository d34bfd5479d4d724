// How many bytes each route's body may have.
import type { FastifyContextConfig } from "fastify";
import { documentBounds } from "../../desired/document/bounds.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What comes in the body: a `chat` has images in it. Absent: a few fields, a text to speak, a document. */
    readonly body?: "chat";
  }
}

/** Parsed within 15 ms whatever it contains, as no license key is needed: forty pages of text to speak, or 500 models. */
const small = documentBounds.bytes;

/** `chat`: bytes that a chat may have, which no other body may have more of. */
export function bodyLimitOf(config: FastifyContextConfig | undefined, chat: number): number {
  return config?.licenseKey === undefined && config?.body === "chat" ? chat : Math.min(chat, small);
}
