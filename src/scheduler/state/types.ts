// What goes into the scheduler's state and comes out of it as plain data.
import type { GatewayError } from "../../core/errors.ts";

/**
 * `load`: the model is being loaded, or another one is; `drain`: a change waits for the answers in flight; `room`: every model
 * slot is taken; `turn`: the model is loaded, and its process has enough to do or has to leave; `size`: another context size
 * comes first.
 */
export type WaitReason = "load" | "drain" | "room" | "router" | "workers" | "size" | "turn";

export interface Limits {
  /** Requests per model, waiting and in flight together. */
  readonly queueLimit: number;
  readonly drainMs: number;
  readonly loadTimeoutMs: number;
  readonly routerWaitMs: number;
  /** How long an idle model stays loaded where no request sets it; Infinity: for ever. */
  readonly keepAliveMs: number;
}

/** A model that answers. */
export interface Loaded {
  /** Another address is another process. */
  readonly origin: string;
  /** Requests that its process computes at once. */
  readonly slots: number;
}

/** The machine as it was at the last `observed` event. */
export interface World {
  /** The router answers. */
  readonly isReady: boolean;
  /** The router's value for each model by id (`unloaded`, `loading`, `loaded`, `sleeping`, `downloading`). */
  readonly listed: ReadonlyMap<string, string>;
  /** By id. They answer while their router is silent, too. */
  readonly loaded: ReadonlyMap<string, Loaded>;
  /** Model slots. */
  readonly modelsMax: number;
  /** Why there will be no router; null: there is one, or there will be. */
  readonly engineProblem: GatewayError | null;
  /** Why no model can be loaded; null: they can. */
  readonly refusal: GatewayError | null;
  /** Whether the document keeps the model loaded. */
  isPinned(id: string): boolean;
  /** False: the cache is known not to hold the model. */
  isCached(id: string): boolean;
  /** Changes with the model's file and settings; null: unknown. */
  identity(id: string): string | null;
}

/** A request's place in the order of all requests; it keeps its number when it waits again. */
export interface Ticket {
  readonly number: number;
  readonly id: string;
  /** ms; when the request came. */
  readonly since: number;
  /** ms; when it came to wait for the model itself. */
  queuedAt: number;
}

/** A model whose last load failed. */
export interface FailingLoad {
  /** In a row. */
  readonly failures: number;
  /** ms since the epoch; no load before this. */
  readonly until: number;
  /** The engine's own message. */
  readonly message: string;
  readonly identity: string | null;
}
