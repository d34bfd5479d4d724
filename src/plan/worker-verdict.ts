// Whether an RPC worker may be used, from its probes: with hysteresis, so that a flapping worker does not reload the models each
// time. Pure: times come in as data.

/** ms after which a loss is forgotten. */
const flapWindowMs = 600_000;
/** ms that a worker has to answer at most, unless the setting is longer. */
const longestStableMs = 300_000;
/** So many failures in a row make a loss; one lost packet does not. */
const failuresToLoss = 2;
/** From so many losses within the window a worker counts as flapping. */
const flappingFrom = 3;

export type Verdict = "unprobed" | "up" | "down";

export interface WorkerRecord {
  readonly verdict: Verdict;
  /** In a row, while it is still up. */
  readonly failures: number;
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** Times (ms) of its losses. */
  readonly losses: readonly number[];
  /** Since when (ms) a worker that is down has answered every time; null while it does not. */
  readonly answersSince: number | null;
}

export type Sighting =
  | { readonly kind: "answered"; readonly at: number }
  | {
      readonly kind: "failed";
      readonly at: number;
      readonly reason: string;
      readonly message: string;
      /** It is gone for certain: one such sighting is enough. */
      readonly certain?: boolean;
    };

export const unprobed: WorkerRecord = {
  verdict: "unprobed",
  failures: 0,
  reason: "NotProbed",
  message: "it was not probed yet",
  losses: [],
  answersSince: null,
};

/** `stableMs`: how long a lost worker has to answer before it is taken back; doubles with each loss in {@link flapWindowMs}. */
export function sighted(record: WorkerRecord, sighting: Sighting, stableMs: number): WorkerRecord {
  const losses = record.losses.filter((at) => sighting.at - at < flapWindowMs).slice(-20);
  return sighting.kind === "answered"
    ? answered({ ...record, losses }, sighting.at, stableMs)
    : failed({ ...record, losses }, sighting);
}

function answered(record: WorkerRecord, at: number, stableMs: number): WorkerRecord {
  const up = { ...record, verdict: "up", failures: 0, reason: "Answering", message: "it answers" } as const;
  if (record.verdict !== "down") return { ...up, answersSince: null };
  const answersSince = record.answersSince ?? at;
  const wait = stableFor(record.losses.length, stableMs);
  if (at - answersSince >= wait) return { ...up, answersSince: null };
  const seconds = Math.ceil(wait / 1000);
  const isFlapping = record.losses.length >= flappingFrom;
  return {
    ...record,
    answersSince,
    reason: isFlapping ? "Flapping" : "Stabilizing",
    message: isFlapping
      ? `it was lost ${record.losses.length} times in ten minutes; it is used again once it has answered for ${seconds} s`
      : `it answers again, and is used again once it has done so for ${seconds} s`,
  };
}

function failed(
  record: WorkerRecord,
  { at, reason, message, certain = false }: Extract<Sighting, { kind: "failed" }>,
): WorkerRecord {
  const down = { ...record, verdict: "down", failures: 0, reason, message, answersSince: null } as const;
  if (record.verdict === "unprobed") return down;
  // One that goes again while it is being watched has been lost once more.
  if (record.verdict === "down") return record.answersSince === null ? down : { ...down, losses: [...down.losses, at] };
  const failures = record.failures + 1;
  if (certain || failures >= failuresToLoss) return { ...down, losses: [...record.losses, at] };
  return { ...record, failures };
}

/** ms that it has to answer before it is taken back; a worker that was never lost is taken at its first answer. */
function stableFor(losses: number, stableMs: number): number {
  return losses === 0 ? 0 : Math.min(Math.max(stableMs, longestStableMs), stableMs * 2 ** (losses - 1));
}
