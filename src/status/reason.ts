// What a row of the condition tables is made of. Pure.

export type Truth = "True" | "False" | "Unknown";

/** One reason of a condition. */
export interface Reason<Facts extends readonly unknown[] = never> {
  readonly status: Truth;
  /** For the docs; also the message where there is no `message`. */
  readonly meaning: string;
  /** A full sentence about the case at hand. */
  readonly message: ((...facts: Facts) => string) | null;
  /** What a person does about it: an imperative. It follows the message. */
  readonly remedy: string | null;
}

/** One condition. */
export interface ConditionType {
  readonly scope: "gateway" | "speech" | "model" | "worker";
  /** `positive`: True is how it should be. `negative`: False is. */
  readonly polarity: "positive" | "negative";
  /** When it is reported, if not always. */
  readonly only?: string;
  /** Where reasons come from that are not listed here. */
  readonly alsoFrom?: string;
  readonly reasons: Readonly<Record<string, Reason>>;
}

interface MakeReason {
  (meaning: string): Reason<[]>;
  <Facts extends readonly unknown[]>(
    meaning: string,
    message: (...facts: Facts) => string,
    remedy?: string,
  ): Reason<Facts>;
}

function withStatus(status: Truth): MakeReason {
  return <Facts extends readonly unknown[]>(
    meaning: string,
    message: ((...facts: Facts) => string) | null = null,
    remedy: string | null = null,
  ): Reason<Facts> => ({ status, meaning, message, remedy });
}

export const yes: MakeReason = withStatus("True");
export const no: MakeReason = withStatus("False");
export const unknown: MakeReason = withStatus("Unknown");

/** The message is handed in whole, by the part that found out. */
export const given = (sentence: string): string => sentence;

export const notObserved = unknown("It cannot be read at the moment; the message has the cause.", given);

type MakeCondition = <Reasons extends ConditionType["reasons"]>(
  scope: ConditionType["scope"],
  reasons: Reasons,
  notes?: Pick<ConditionType, "only" | "alsoFrom">,
) => ConditionType & { readonly reasons: Reasons };

function withPolarity(polarity: ConditionType["polarity"]): MakeCondition {
  return (scope, reasons, notes = {}) => ({ scope, polarity, reasons, ...notes });
}

export const positive: MakeCondition = withPolarity("positive");
export const negative: MakeCondition = withPolarity("negative");
