// What goes into the scheduler's state and comes out of it, as plain data: events and effects. README.md has both as a table.
import type { GatewayError } from "../../core/errors.ts";
import type { TokenAnswer } from "../../core/token-answer.ts";
import type { World } from "./world.ts";

/** `load`: of any model; `room`: a model slot; `turn`: the process is busy or has to leave; `size`: another context size. */
export type WaitReason = "load" | "drain" | "room" | "router" | "workers" | "size" | "turn";

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

/** How a load ended early. */
export interface LoadEnd {
  readonly isWorkerLost: boolean;
  /** The engine refused what it was given; else it was killed, or lacked memory. */
  readonly isFault: boolean;
  /** It ended for lack of memory. */
  readonly isShort: boolean;
  /** The engine's own message. */
  readonly why: string;
  /** With which RPC workers, for the message. */
  readonly workers: string;
}

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
  | ({ readonly kind: "loadEnded" } & LoadEnd)
  /** `origin`: of the process that was asked. */
  | { readonly kind: "tokenAnswered"; readonly id: string; readonly origin: string; readonly answer: TokenAnswer }
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
  /** `since`: when its first try began, ms. */
  | { readonly kind: "explainEnd"; readonly id: string; readonly since: number }
  /** Its settings fail: the last ones that worked are to take their place. */
  | { readonly kind: "fallBack"; readonly id: string; readonly why: string }
  | { readonly kind: "askToken"; readonly id: string }
  /** Its process has given its first token. */
  | { readonly kind: "loadVerified"; readonly id: string }
  | { readonly kind: "loadFailed"; readonly id: string }
  | { readonly kind: "unload"; readonly id: string }
  | { readonly kind: "unloaded"; readonly id: string; readonly error: GatewayError | null }
  /** The answers in flight end with their model. */
  | { readonly kind: "cut"; readonly id: string }
  /** `cut`: answers that were cut, by model that had some in flight. */
  | { readonly kind: "drained"; readonly drain: number; readonly cut: ReadonlyMap<string, number> }
  | { readonly kind: "readList" }
  | { readonly kind: "warn"; readonly message: string; readonly fields: object };
