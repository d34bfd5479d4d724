// What the state holds of one model, and of what is being done to models: unloads, the one load, drains.
import type { FailingLoad, Ticket, WaitReason } from "./events.ts";
import { noTurn, type Turn } from "./placement.ts";

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
  firstToken: FirstToken | null = null;
  idle: Idle | null = null;
  failing: FailingLoad | null = null;
  /** ms; when its load began that ended early and is made again. */
  firstTryAt: number | null = null;
  /** That one ended for lack of memory. */
  isShort = false;
  /** Its settings failed; it is not loaded before others are in force. */
  fallback: { readonly since: number; readonly why: string } | null = null;

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

/** What has come of the first question to a process; gone with the process. */
export interface FirstToken {
  readonly origin: string;
  /** ms; when it was asked first. */
  readonly since: number;
  /** `refused`: it is to be unloaded. */
  state: "asked" | "given" | "refused";
  /** ms; when the question, or the unload, is repeated. Infinity: not by itself. */
  againAt: number;
  /** How long it took. */
  ms: number;
  /** Why it was refused. */
  why: string;
}

/** It is given requests. */
export function isBelieved({ firstToken }: Model): boolean {
  return firstToken?.state === "given";
}

/** How long a process stays loaded; gone with the process. */
export interface Idle {
  readonly origin: string;
  keepMs: number;
  /** A request has set it. */
  isAsked: boolean;
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
}

export interface Drain {
  readonly models: readonly string[] | "all";
  readonly began: number;
  /** Models with answers in flight when it began. */
  readonly busy: readonly string[];
  isDone: boolean;
}
