// Requests in the status: models whose load fails, responses that a change has cut, and what requests wait for. Pure.
import { type Finding, finding } from "./finding.ts";

/** A model whose last load failed. */
interface FailingLoad {
  readonly failures: number;
  /** Not tried before this, ms since the epoch. */
  readonly until: number;
  readonly message: string;
}

/** What the last drain of a model cut. */
interface CutAnswers {
  readonly count: number;
  /** ms since the epoch. */
  readonly at: number;
}

/** By the router's ids. */
export interface RequestFacts {
  readonly failing: ReadonlyMap<string, FailingLoad>;
  readonly cuts: ReadonlyMap<string, CutAnswers>;
  readonly drainMs: number;
}

/** Of a model that is not loaded, as its last load failed; null where it did not. */
export function loadFailing(upstreamId: string | undefined, { failing }: RequestFacts): Finding | null {
  const entry = failing.get(upstreamId ?? "");
  if (!entry) return null;
  const { failures, until, message } = entry;
  const loads = failures === 1 ? "Its last load" : `Each of its last ${failures} loads`;
  return finding("Loaded", "LoadFailing", loads, message.replace(/\.$/, ""), new Date(until).toISOString());
}

/** Of a model that was drained for a change. */
export function drained(upstreamId: string | undefined, { cuts, drainMs }: RequestFacts): Finding[] {
  const last = cuts.get(upstreamId ?? "");
  if (!last) return [];
  if (last.count === 0) return [finding("Drained", "Drained")];
  return [finding("Drained", "DrainTimedOut", new Date(last.at).toISOString(), last.count, drainMs / 1000)];
}
