// Requests in flight over HTTP: listed, and ended one by one.
import { cancelRequestSchema, requestCancelledSchema, requestsSchema } from "../../../schemas/requests.ts";
import { ok } from "../../../schemas/route.ts";
import type { InFlight } from "../proxy/in-flight.ts";
import { routesOf } from "../server/route.ts";

export interface RequestRoutesDeps {
  readonly inFlight: Pick<InFlight, "list" | "cancel">;
}

const { get, post } = routesOf<RequestRoutesDeps>();

export const requestRoutes = [
  get("/api/requests", {
    operationId: "requests",
    summary: "List the requests in flight",
    description: "Chats, completions and embeddings, with those that wait for their model.",
    response: ok("The oldest first.", requestsSchema),
    handler: ({ inFlight }) => ({ requests: inFlight.list() }),
  }),
  post("/api/requests/cancel", {
    operationId: "cancelRequest",
    summary: "Cancel a request in flight",
    description: "Its client gets the error `cancelled`, and the engine stops computing.",
    body: cancelRequestSchema,
    response: ok("It is over.", requestCancelledSchema),
    handler: ({ inFlight }, { body }) => ({ ok: true, cancelled: inFlight.cancel(body.id) }),
  }),
];
