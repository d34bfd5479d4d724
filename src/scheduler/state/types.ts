// What goes into the scheduler's state and comes out of it, as plain data: events and effects. README.md has both as a table.
import type { GatewayError } from "../../core/errors.ts";

/** `load`: of any model; `room`: a model slot; `turn`: the process is busy or has to leave; `size`: another context size. */
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
  /** What the router has read, the preset and the cache: with another one a load may end otherwise. */
  readonly inputs: string;
  /** Why there will be no router; null: there is one, or there will be. */
  readonly engineProblem: GatewayError | null;
  /** Why no model can be loaded; null: they can. */
  readonly refusal: GatewayError | null;
  /** Whether the document keeps the model loaded. */
  isPinned(id: string): boolean;
  /** False: the cache is known not to hold the model. */
  isCached(id: string): boolean;
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
}

/** Whether a model may be loaded onto the RPC workers now. */
export type WorkersVerdict =
  | { readonly kind: "ready"; readonly stallMs: number }
  | { readonly kind: "wait" }
  | { readonly kind: "refused"; readonly error: GatewayError };

export type Event = { readonly now: number } & (
  | { readonly kind: "enter"; readonly ticket: Ticket; readonly reason: WaitReason }
  | { readonly kind: "request"; readonly ticket: Ticket }
  | { readonly kind: "left"; readonly ticket: Ticket }
  | { readonly kind: "released"; readonly id: string }
  | { readonly kind: "observed"; readonly world: World }
  | { readonly kind: "progress"; readonly id: string }
  | { readonly kind: "workersChecked"; readonly verdict: WorkersVerdict }
  /** The router has answered the call; `error` null: it has taken it. */
  | { readonly kind: "loadSent"; readonly error: GatewayError | null }
  /** `why`: the engine's own message; `workers`: with which RPC workers, for the message. */
  | { readonly kind: "loadEnded"; readonly isWorkerLost: boolean; readonly why: string; readonly workers: string }
  | { readonly kind: "unload"; readonly id: string }
  | { readonly kind: "unloadSent"; readonly id: string; readonly error: GatewayError | null }
  | { readonly kind: "drainBegan"; readonly drain: number; readonly models: readonly string[] | "all" }
  | { readonly kind: "drainOver"; readonly drain: number }
  | { readonly kind: "keep"; readonly id: string; readonly keepMs: number }
  | { readonly kind: "retry"; readonly id: string | null }
  | { readonly kind: "shutdown" }
  | { readonly kind: "tick" }
);

export type Effect =
  | { readonly kind: "grant"; readonly ticket: Ticket }
  | { readonly kind: "reject"; readonly ticket: Ticket; readonly error: GatewayError }
  /** `isLate`: the preset has had its time to follow the workers. */
  | { readonly kind: "checkWorkers"; readonly id: string; readonly isLate: boolean }
  | { readonly kind: "releaseWorkers" }
  | { readonly kind: "load"; readonly id: string }
  | { readonly kind: "explainEnd"; readonly id: string }
  | { readonly kind: "loadFailed"; readonly id: string }
  | { readonly kind: "unload"; readonly id: string }
  | { readonly kind: "unloaded"; readonly id: string; readonly error: GatewayError | null }
  /** The answers in flight end with their model. */
  | { readonly kind: "cut"; readonly id: string }
  /** `cut`: answers that were cut, by model that had some in flight. */
  | { readonly kind: "drained"; readonly drain: number; readonly cut: ReadonlyMap<string, number> }
  | { readonly kind: "readList" }
  | { readonly kind: "warn"; readonly message: string; readonly fields: object };
