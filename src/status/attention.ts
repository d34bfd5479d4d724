// What of a status needs a hand, and the state of a model in a word: for the terminal and for the status page. Pure.
import type { StatusBody } from "../../schemas/status.ts";
import { conditionTable } from "./condition-table.ts";

type Condition = StatusBody["conditions"][number];
type Model = StatusBody["models"][number];

export interface Matter {
  /** A model's id, a worker's address; empty: the gateway. */
  readonly subject: string;
  /** Type and reason of a condition, or the kind of an action that is held. */
  readonly what: string;
  readonly message: string;
  /** ISO 8601; null: an action that is held. */
  readonly since: string | null;
}

/** Reasons that pass by themselves, or are as usual. */
const usual: ReadonlySet<string> = new Set(
  (
    "Pulling Queued Pending Absent NotListed Unloaded Loading Idle " +
    "OutOfSync NotStarted Starting EngineInstalling Changing Stabilizing WaitingForWriter"
  ).split(" "),
);

export function isWrong({ type, status, reason }: Condition): boolean {
  if (type === "Reconciling" || usual.has(reason)) return false;
  const { polarity } = (conditionTable as Readonly<Record<string, { readonly polarity: string }>>)[type] ?? {};
  return status === (polarity === "negative" ? "True" : "False");
}

/** These repeat what others have found. */
const summaries: ReadonlySet<string> = new Set(["Ready", "Healthy"]);

/** Each matter once: that a model cannot be pulled makes the gateway `Stalled` too, in the same words. */
export function attentionIn({ conditions, models, rpc, planned }: StatusBody): Matter[] {
  const subjects: readonly (readonly [subject: string, conditions: readonly Condition[]])[] = [
    ...models.map((model) => [model.id, model.conditions] as const),
    ...rpc.workers.map((worker) => [worker.address, worker.conditions] as const),
    ["", conditions],
  ];
  const wrong = subjects.flatMap(([subject, all]) =>
    all.filter(isWrong).map((condition) => ({ ...condition, subject })),
  );
  const causes = wrong.filter(({ type }) => !summaries.has(type));
  const told = new Set<string>();
  const matters = (causes.length > 0 ? causes : wrong).flatMap(
    ({ subject, type, reason, message, lastTransitionTime }) => {
      if (told.has(message)) return [];
      told.add(message);
      return [{ subject, what: `${type} ${reason}`, message, since: lastTransitionTime }];
    },
  );
  const held = planned.filter((action) => isStuck(action) && !told.has(action.because));
  return [
    ...matters,
    ...held.map(({ kind, message, because, model = "" }) => ({
      subject: model,
      what: kind,
      message: `${message}: ${because}`,
      since: null,
    })),
  ];
}

/** Not held for a while on purpose. */
export function isStuck({ held }: StatusBody["planned"][number]): boolean {
  return held !== "settling" && held !== "prune" && held !== "writer";
}

/** Of what clients cannot use, why. */
export function stateOf({ runtime, conditions }: Model): string {
  const of = (name: string): Condition | undefined => conditions.find(({ type }) => type === name);
  const [present, loaded] = [of("Present"), of("Loaded")];
  if (!runtime || present?.status === "False") return present?.reason ?? "absent";
  return loaded?.reason === "LoadFailing" || loaded?.reason === "LoadFailed" ? loaded.reason : runtime.state;
}
