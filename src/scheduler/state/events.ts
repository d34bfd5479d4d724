// What happens to the scheduler, and what it has done about it. README.md has both as a table.
import type { GatewayError } from "../../core/errors.ts";
import type { Ticket, WaitReason, World } from "./types.ts";

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
  | { readonly kind: "loadStarted" }
  | { readonly kind: "loadRefused"; readonly error: GatewayError }
  /** `why`: the engine's own message; `workers`: with which RPC workers, for the message. */
  | { readonly kind: "loadEnded"; readonly isWorkerLost: boolean; readonly why: string; readonly workers: string }
  | { readonly kind: "unload"; readonly id: string }
  | { readonly kind: "unloadSent"; readonly id: string }
  | { readonly kind: "unloadFailed"; readonly id: string; readonly error: GatewayError }
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
