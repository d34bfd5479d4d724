// An action with what may hold it back. Pure types.
import type { Action, BackoffEntry } from "./actions.ts";
import type { Needs } from "./room.ts";

export interface PlanContext {
  /** ms since the epoch. */
  readonly now: number;
  readonly backoff: ReadonlyMap<string, BackoffEntry>;
  /** A running router without a response for this long hangs. */
  readonly silenceLimitMs: number;
  /** Before this (ms) the document is likely to change again: a running router does not reload yet. */
  readonly settledAt?: number;
  /** Disk space that pulls need, as far as known; default: unknown. */
  readonly needs?: Needs;
}

export interface Candidate {
  readonly action: Action;
  /** ms; 0: at once. */
  readonly notBefore: number;
  /** What comes first. It stays in the plan: one that hides a deletion misleads. */
  readonly waits?: string;
  /** A hundred changes in a second are to cost one reload. */
  readonly settles?: boolean;
  /** A prune whose time has not come, and why. */
  readonly prune?: { readonly because: string; readonly until: number | null };
  /** Applies nothing of the document, so `suspend` does not hold it. */
  readonly isUpkeep?: boolean;
}
