// Requests in flight, and the end of one.
import type { FromSchema } from "json-schema-to-ts";
import { exact, flag, integer, list, success, text } from "./shapes.ts";

const requestSchema = {
  title: "RequestInFlight",
  ...exact({
    id: integer("Counts up from 1 in each run of the gateway."),
    model: text("The model's id."),
    route: { ...text("Below its family's prefix."), examples: ["/chat/completions"] },
    state: {
      enum: ["waiting", "prompt", "answering"],
      description: "waiting: for its model; prompt: the engine reads it; answering: its response has begun.",
    },
    startedAt: text("ISO 8601."),
  }),
} as const;

export const requestsSchema = {
  title: "RequestsInFlight",
  ...exact({ requests: list(requestSchema, "The oldest first.") }),
} as const;

export type RequestsBody = FromSchema<typeof requestsSchema>;

export const cancelRequestSchema = {
  title: "CancelRequest",
  ...exact({ id: { ...integer("As the list has it."), minimum: 1 } }),
  examples: [{ id: 12 }],
} as const;

export const requestCancelledSchema = {
  title: "RequestCancelled",
  ...exact({ ok: success, cancelled: flag("False: it was over already.") }),
} as const;

export type RequestCancelled = FromSchema<typeof requestCancelledSchema>;
