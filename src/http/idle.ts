// Unloads a model that nobody has used for as long as its last request said it is to be kept.
import type { KeepAlive } from "../core/keep-alive.ts";
import type { Admission } from "./admission.ts";

export interface IdleUnload {
  /** A request says how long its model stays loaded after the last answer; `default` leaves what holds. */
  keep(upstreamId: string, keepAlive: KeepAlive): void;
  /** When a loaded model is unloaded if nobody uses it, ms since the epoch; null: not by itself. */
  expiresAt(upstreamId: string): number | null;
  stop(): void;
}

export function createIdleUnload(_options: {
  readonly admission: Admission;
  /** Where no request says; null: never. */
  readonly keepAliveMs: number | null;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
}): IdleUnload {
  return { keep: () => undefined, expiresAt: () => null, stop: () => undefined };
}
