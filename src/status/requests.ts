// What requests have met with: models whose load fails, answers that a change has cut, and who waits for what. Pure.
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

export interface WaitingReport {
  readonly model: string;
  readonly requests: number;
  /** Of the one that has waited longest. */
  readonly oldestMs: number;
  readonly for: "load" | "drain" | "room" | "router" | "workers" | "size" | "turn";
}

/** Of a model that is not loaded, as its last load failed; null where it did not. */
export function loadFailing(upstreamId: string | undefined, { failing }: RequestFacts): Finding | null {
  const entry = failing.get(upstreamId ?? "");
  if (!entry) return null;
  const { failures, until, message } = entry;
  const times = failures === 1 ? "its last load" : `each of its last ${failures} loads`;
  return finding(
    "Loaded",
    "False",
    "LoadFailing",
    `${times} failed: ${message.replace(/\.$/, "")}. It is not tried before ${new Date(until).toISOString()}, unless its file or settings change, or somebody asks with POST /v1/models/load or POST /api/reconcile`,
  );
}

/** Of a model that was drained for a change. */
export function drained(upstreamId: string | undefined, { cuts, drainMs }: RequestFacts): Finding[] {
  const last = cuts.get(upstreamId ?? "");
  if (!last) return [];
  if (last.count === 0) return [finding("Drained", "True", "AnswersThrough", "its last change cut no answer")];
  return [
    finding(
      "Drained",
      "False",
      "DrainTimedOut",
      `its last change, at ${new Date(last.at).toISOString()}, cut ${last.count} answer(s) that took longer than the ${drainMs / 1000} s of --drain-timeout; their clients were told`,
    ),
  ];
}
