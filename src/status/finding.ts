// The shape of a condition, and of a finding that becomes one. Pure.

export type Truth = "True" | "False" | "Unknown";

export interface Condition {
  readonly type: string;
  readonly status: Truth;
  /** CamelCase, for machines. */
  readonly reason: string;
  /** For people: what is the matter, and what to do. */
  readonly message: string;
  readonly observedGeneration: number;
  /** ISO 8601; moves only when `status` changes. */
  readonly lastTransitionTime: string;
}

/** A condition before it has a time. */
export interface Finding {
  readonly type: string;
  readonly status: Truth;
  readonly reason: string;
  readonly message: string;
}

/** Of a gateway that stops, whatever else is true of it. */
export const shuttingDown = { reason: "ShuttingDown", message: "the gateway is stopping" } as const;

export function finding(type: string, status: Truth, reason: string, message: string): Finding {
  return { type, status, reason, message };
}
