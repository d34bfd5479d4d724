// The gateway's journal as it is written.
import type { EventData } from "../../schemas/desired.ts";
import { eventsOf } from "./streams.ts";
import { type CallOptions, connectionLost, type Transport } from "./transport.ts";

export interface GatewayEvent {
  /** For `since`. */
  readonly id: string;
  /**
   * `condition`, `action.started`, `action.progress`, `action.finished`, `action.failed`, `document`, `source`, …
   * `reset`: events after `since` were missed, so read the status again; the events that are still kept follow.
   */
  readonly type: string;
  /** `at`, in ISO 8601, and the fields of the type. */
  readonly data: EventData;
}

export interface EventsOptions extends CallOptions {
  /** The id of the last event that was received: later events are replayed, as far as they are kept. `0`: all of them. */
  readonly since?: string;
}

/** Ends with the connection; an abort ends it without an error. Errors: `GatewayClientError`. */
export async function* followEvents(
  transport: Transport,
  { since, signal }: EventsOptions,
): AsyncGenerator<GatewayEvent, void, undefined> {
  try {
    const response = await transport.send("/api/events", { query: { since }, signal });
    for await (const { id, type, data } of eventsOf(response.body)) {
      yield { id, type, data: JSON.parse(data) as EventData };
    }
  } catch (error) {
    if (signal?.aborted) return;
    throw connectionLost(error, signal);
  }
}
