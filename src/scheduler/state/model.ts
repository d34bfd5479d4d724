// What the state holds of one model, and of what is being done to models: unloads, the one load, drains.
import type { FailingLoad, Ticket, WaitReason } from "./events.ts";
import { noTurn, type Turn } from "./placement.ts";
import type { ByDevice } from "./world.ts";

/** Everything that is known of one model; dropped when nothing is. */
export class Model {
  readonly id: string;
  /** By ticket number. */
  readonly queue: Ticket[] = [];
  /** Requests that wait for something else first. */
  readonly elsewhere = new Map<Ticket, WaitReason>();
  inFlight = 0;
  unload: Unload | null = null;
  /** What the queue waits for. */
  reason: WaitReason = "load";
  reasonSince = 0;
  unlistedSince: number | null = null;
  /** Since when its load waits for RPC workers. */
  workersSince: number | null = null;
  lastUsed = 0;
  turn: Turn = noTurn;
  idle: Idle | null = null;
  failing: FailingLoad | null = null;
  /** Its last load ended early and is made again. */
  hasEndedOnce = false;
  /** It ended for lack of memory. */
  isShort = false;

  constructor(id: string) {
    this.id = id;
  }
}

export interface Unload {
  readonly since: number;
  /** The router has taken the call. */
  isSent: boolean;
  readonly cause: "idle" | "request" | { readonly slotFor: string };
}

/** How long a process stays loaded; gone with the process. */
export interface Idle {
  readonly origin: string;
  keepMs: number;
  /** ms; Infinity: in use, for ever, or being unloaded. */
  dueAt: number;
}

/** The one load in progress. */
export interface Load {
  readonly id: string;
  /** `workers`: may it be loaded onto the RPC workers; `starting`: the router is asked; `ended`: the cause is looked up. */
  phase: "workers" | "starting" | "loading" | "ended";
  /** ms; start of the phases `workers` and `starting`. */
  since: number;
  /** The workers are reserved for this load. */
  hasWorkers: boolean;
  /** ms without progress after which the load counts as stalled. */
  stallMs: number;
  progressAt: number;
  /** Why the scheduler ended it; null: it did not. */
  timeout: string | null;
  /** Unloaded on request: no failure of the model. */
  isUnwanted: boolean;
  /** What all models could take before its process started; null: that is not known. */
  limits: ByDevice | null;
}

export interface Drain {
  readonly models: readonly string[] | "all";
  readonly began: number;
  /** Models with answers in flight when it began. */
  readonly busy: readonly string[];
  isDone: boolean;
}
