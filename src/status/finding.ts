// The shape of a condition, and of a finding that becomes one. Findings are made from the condition tables: the caller chooses a
// reason and hands in the facts. Pure.
import { followedBy } from "../core/sentences.ts";
import { gatewayConditions } from "./gateway-conditions.ts";
import { partConditions } from "./part-conditions.ts";
import type { Reason, Truth } from "./reason.ts";

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
export type Finding = Pick<Condition, "type" | "status" | "reason" | "message">;

/** Every condition, by type, in the order of the docs. */
export const conditionTable = { ...gatewayConditions, ...partConditions };

type Table = typeof conditionTable;
export type ConditionName = keyof Table;
type ReasonName<Type extends ConditionName> = keyof Table[Type]["reasons"] & string;
type Facts<Row> = Row extends Reason<infer Given> ? Given : never;

export function finding<Type extends ConditionName, Name extends ReasonName<Type>>(
  type: Type,
  reason: Name,
  ...facts: Facts<Table[Type]["reasons"][Name]>
): Finding {
  const row = rowOf(type, reason);
  return { type, status: row.status, reason, message: wordsOf(row, facts) };
}

/** What another part of the gateway found, with its own reason, message and remedy. */
export function reported(type: ConditionName, status: Truth, reason: string, message: string): Finding {
  return { type, status, reason, message };
}

function rowOf<Type extends ConditionName>(type: Type, reason: ReasonName<Type>): Reason<readonly unknown[]> {
  return (conditionTable[type].reasons as Record<string, Reason<readonly unknown[]>>)[reason] as Reason<
    readonly unknown[]
  >;
}

function wordsOf({ message, meaning, remedy }: Reason<readonly unknown[]>, facts: readonly unknown[]): string {
  const sentence = message?.(...facts) ?? meaning;
  return remedy === null ? sentence : followedBy(sentence, remedy);
}
