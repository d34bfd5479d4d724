// What the simulated machine is made of.
import { GatewayError } from "../../../src/core/errors.ts";
import type { Event, Ticket } from "../../../src/scheduler/state/events.ts";
import type { Limits } from "../../../src/scheduler/state/world.ts";

export type LoadOutcome = "loads" | "ends" | "short" | "stalls" | "refused" | "breaksOff" | "deaf";

export interface Client {
  readonly ticket: Ticket;
  readonly answerMs: number;
  state: "elsewhere" | "waits" | "answers" | "answered" | "rejected" | "left";
  error: GatewayError | null;
}

export interface Process {
  value: "loading" | "loaded";
  readonly origin: string;
}

/** An event without its time. */
export type EventBody = Event extends infer E ? (E extends Event ? Omit<E, "now"> : never) : never;

export interface Change {
  readonly models: readonly string[] | "all";
  isDrained: boolean;
}

export const limits: Limits = {
  queueLimit: 12,
  drainMs: 20_000,
  loadTimeoutMs: 60_000,
  routerWaitMs: 30_000,
  keepAliveMs: 120_000,
};

export const brokenLoad = { kind: "loadEnded", why: "it broke", workers: "" } as const;
export const refused = (): GatewayError => new GatewayError("router_unavailable", "no");
export const brokenOff = (): GatewayError =>
  new GatewayError("router_unavailable", "no", { cause: new Error("ECONNRESET") });
