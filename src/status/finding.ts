// What is found to be true, which becomes a condition once it has a time. Pure.
import { followedBy } from "../core/errors.ts";
import type { OwnCommand } from "../core/own-command.ts";
import type { Desired } from "../desired/document/document.ts";
import type { SourceStatus } from "../desired/document/parse.ts";
import { type Action, type BackoffEntry, backoffKey, type Plan, type RunningAction } from "../plan/actions.ts";
import { cachedIn } from "../plan/find-model.ts";
import { sourceState } from "../plan/model-files.ts";
import type { Observed } from "../plan/observed.ts";
import { type ConditionType, conditionTable, type Truth } from "./condition-table.ts";

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

export type Finding = Pick<Condition, "type" | "status" | "reason" | "message">;

export interface StatusInput {
  readonly desired: Desired;
  readonly observed: Observed;
  readonly plan: Plan;
  readonly source: SourceStatus;
  readonly running: readonly Pick<RunningAction, "action" | "startedAt" | "progress">[];
  readonly backoff: ReadonlyMap<string, BackoffEntry>;
  readonly hub: { readonly status: "unknown" | "reachable" | "unreachable"; readonly message: string };
  /** Whether the state folder takes changes. */
  readonly state: { readonly writable: boolean; readonly reason: string; readonly message: string };
  readonly engineProblem: { readonly reason: string; readonly message: string } | null;
  readonly requests: RequestFacts;
  /** Whether a model fits into memory: of a cached one by the router's id, else by the document's. */
  readonly fits: ReadonlyMap<string, FitsFact>;
  readonly command: OwnCommand;
}

interface FitsFact {
  readonly reason: "Fits" | "TooLarge" | "Refused" | "Estimating" | "NotEstimated";
  readonly message: string;
}

const indexes = new WeakMap<readonly object[], Map<string, object[]>>();

/** Of running, held or planned actions those of one key. Indexed: each of many models asks, several times in a pass. */
export function ofKey<Entry extends { readonly key: string } | { readonly action: { readonly key: string } }>(
  entries: readonly Entry[],
  key: string,
): readonly Entry[] {
  const index = indexes.get(entries) ?? new Map<string, object[]>();
  if (!indexes.has(entries)) {
    for (const entry of entries) {
      const own = "action" in entry ? entry.action.key : entry.key;
      index.set(own, [...(index.get(own) ?? []), entry]);
    }
    indexes.set(entries, index);
  }
  return (index.get(key) ?? []) as Entry[];
}

/** By the router's ids; times in ms since the epoch. */
export interface RequestFacts {
  /** Models whose last load failed: they are not tried before `until`. */
  readonly failing: ReadonlyMap<
    string,
    { readonly failures: number; readonly until: number; readonly message: string }
  >;
  /** Of loaded models: how long the first token of their process took, ms; null: it has not come yet. */
  readonly firstTokens: ReadonlyMap<string, number | null>;
}

type Table = typeof conditionTable;
type ConditionName = keyof Table;

/** Status and remedy are those of the table; the message too, where the caller has none. */
export function finding<Type extends ConditionName>(
  type: Type,
  reason: keyof Table[Type]["reasons"] & string,
  message?: string,
): Finding {
  const { reasons }: ConditionType = conditionTable[type];
  const { status, meaning, remedy } = reasons[reason] as ConditionType["reasons"][string];
  const sentence = message ?? meaning;
  return reported(type, status, reason, remedy === null ? sentence : followedBy(sentence, remedy));
}

/** What another part of the gateway found, with its own reason, message and remedy. */
export function reported(name: ConditionName, status: Truth, reason: string, message: string): Finding {
  const { type = name }: ConditionType = conditionTable[name];
  return { type, status, reason, message };
}

export function failureOf(
  backoff: ReadonlyMap<string, BackoffEntry>,
  kind: Action["kind"],
  key: string,
): BackoffEntry | undefined {
  return backoff.get(backoffKey({ kind, key }));
}

/** Why something is not as the document says: an action failed. */
export function failed(type: ConditionName, { reason, message, hint }: BackoffEntry): Finding {
  return reported(type, "False", reason, followedBy(message, hint));
}

/** The reason for what the plan could not do, by the model's id in the cache. */
export function reasonOf(
  cachedId: string,
  { desired: { models }, observed, plan }: Pick<StatusInput, "desired" | "observed" | "plan">,
): "SourceMissing" | "CannotApply" | "RolledBack" {
  if (plan.rolledBack.has(cachedId)) return "RolledBack";
  const isGone = models.some(
    (model) => cachedIn(observed, model.id)?.id === cachedId && sourceState(model, observed) === "missing",
  );
  return isGone ? "SourceMissing" : "CannotApply";
}

/** Why no chat can be served, of the gateway's findings or conditions. A stuck pull, for one, does not stop chats. */
export function notServing(parts: readonly Finding[]): Finding | undefined {
  return (
    parts.find(({ type, status }) => type === "RouterReady" && status !== "True") ??
    parts.find(({ reason }) => reason === "TooFewWorkers")
  );
}
