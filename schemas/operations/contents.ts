// Short ways to write requests and responses in the table of operations.
import type { Content, OperationRequest, OperationResponse, Schema } from "./operation.ts";

export const textSchema = { type: "string" } as const;

export function json(schema: Schema): Content {
  return { mediaType: "application/json", schema };
}

/** Server-sent events; the schema is that of the data of one. */
export function events(schema: Schema): Content {
  return { mediaType: "text/event-stream", schema };
}

/** JSON, a record per line; the schema is that of one. */
export function lines(schema: Schema): Content {
  return { mediaType: "application/x-ndjson", schema };
}

export function body(...content: Content[]): OperationRequest {
  return { content };
}

export function ok(description: string, ...content: Content[]): OperationResponse {
  return { status: 200, description, content };
}
