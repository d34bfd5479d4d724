// Whether an RPC worker may be used, from its probes: with hysteresis, so that a flapping worker does not reload the models each
// time. Pure: times come in as data.

/** So many failures in a row make a loss; one lost packet does not. */
const failuresToLoss = 2;

export type Verdict = "unprobed" | "up" | "down";

export interface WorkerRecord {
  readonly verdict: Verdict;
  /** In a row, while it is still up. */
  readonly failures: number;
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** It was up before. */
  readonly wasLost: boolean;
  /** Since when (ms) a worker that is down has answered every time; null while it does not. */
  readonly answersSince: number | null;
}

/** Why a probe failed. */
export interface ProbeFault {
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** It is gone for certain: one such probe is enough. */
  readonly certain: boolean;
}

export const unprobed: WorkerRecord = {
  verdict: "unprobed",
  failures: 0,
  reason: "NotProbed",
  message: "it was not probed yet",
  wasLost: false,
  answersSince: null,
};

/**
 * After a probe at `at` (ms). `fault` null: it answered. `stableMs`: how long a lost worker has to answer before it is taken back; one
 * that was never up is taken at its first answer.
 */
export function afterProbe(record: WorkerRecord, fault: ProbeFault | null, at: number, stableMs: number): WorkerRecord {
  return fault ? afterFault(record, fault) : afterAnswer(record, at, stableMs);
}

function afterAnswer(record: WorkerRecord, at: number, stableMs: number): WorkerRecord {
  const answersSince = record.answersSince ?? at;
  if (record.verdict === "down" && record.wasLost && at - answersSince < stableMs) {
    const message = `it answers again, and is used again once it has done so for ${Math.ceil(stableMs / 1000)} s`;
    return { ...record, answersSince, reason: "Stabilizing", message };
  }
  return { ...record, verdict: "up", failures: 0, reason: "Answering", message: "it answers", answersSince: null };
}

function afterFault(record: WorkerRecord, { reason, message, certain }: ProbeFault): WorkerRecord {
  const failures = record.failures + 1;
  if (record.verdict === "up" && !certain && failures < failuresToLoss) return { ...record, failures };
  const wasLost = record.wasLost || record.verdict === "up";
  return { verdict: "down", failures: 0, reason, message, wasLost, answersSince: null };
}
