// Whether what `wait` and `apply --wait` wait for is so, will not be so without help, or may still come. Pure.
import type { StatusBody } from "../client/index.ts";

export interface Goal {
  readonly for: "synced" | "ready" | { readonly model: string };
  /** The text that was applied, and must still be. */
  readonly sha256?: string | undefined;
  /** Of the applied text. */
  readonly revision?: string | undefined;
  /** The document's, or a later one's. */
  readonly generation?: number | undefined;
}

export interface Verdict {
  /** `failed`: waiting does not help. */
  readonly state: "met" | "failed" | "waiting";
  /** Of a condition, for programs. */
  readonly reason: string;
  /** With what to do. */
  readonly message: string;
}

type Condition = Pick<StatusBody["conditions"][number], "type" | "status" | "reason" | "message">;

/** Of conditions that no pass of the gateway changes: a person has to. */
const lasting: ReadonlySet<string> = new Set([
  ..."Suspended CannotApply RolledBack SourceMissing EngineMissing DiskFull LoadFailing LoadFailed".split(" "),
  ..."ParseError FileMissing FileUnreadable Conflict StateUnwritable".split(" "),
]);

export function verdictOf(status: StatusBody, goal: Goal): Verdict {
  const early = otherText(status, goal) ?? unseen(status, goal);
  if (early) return early;
  if (typeof goal.for === "object") return modelVerdict(status, goal.for.model);
  return verdict(conditionIn(status.conditions, goal.for === "ready" ? "Ready" : "Synced"), blocking(status, goal));
}

/** What has been applied is not what is waited for. */
function otherText({ applied }: StatusBody, { sha256, revision }: Goal): Verdict | null {
  const isOther = sha256 !== undefined && applied?.sha256 !== sha256;
  if (!isOther && (revision === undefined || applied?.revision === revision)) return null;
  const which = `${applied?.revision ? `revision ${applied.revision}, ` : ""}sha256 ${applied?.sha256 ?? "unknown"}`;
  const what = applied ? `${which}, by ${applied.by}` : "no file";
  return sha256 === undefined
    ? {
        state: "waiting",
        reason: "NotApplied",
        message: `Revision ${revision} is not applied; what is applied: ${what}.`,
      }
    : { state: "failed", reason: "Superseded", message: `Another text is applied by now: ${what}. Apply yours again.` };
}

/** Conditions are of an older document. */
function unseen({ generation, observedGeneration }: StatusBody, goal: Goal): Verdict | null {
  const wanted = Math.max(generation, goal.generation ?? 0);
  if (observedGeneration >= wanted) return null;
  const message = `The last pass was over generation ${observedGeneration}, and generation ${wanted} is waited for.`;
  return { state: "waiting", reason: "NotObserved", message };
}

/** A condition that keeps the goal from being met until a person acts. */
function blocking({ conditions, models, planned }: StatusBody, { sha256 }: Goal): Condition | undefined {
  const stalled = conditionIn(conditions, "Stalled");
  if (stalled?.status === "True") return stalled;
  const source = conditionIn(conditions, "SourceValid");
  // A text that was applied by a call does not depend on the file.
  if (sha256 === undefined && source?.status === "False") return source;
  const crowded = planned.find(({ held }) => held === "room")?.model;
  return models
    .filter(({ id }) => id === crowded)
    .flatMap((model) => model.conditions)
    .find(({ reason }) => reason === "DiskFull");
}

function modelVerdict({ models, planned }: StatusBody, name: string): Verdict {
  const model = models.find(({ id }) => id.toLowerCase() === name.toLowerCase());
  if (!model) {
    const message = `Neither the document nor the model cache has ${name}. Correct its id, or add it to the document.`;
    return { state: "failed", reason: "NotFound", message };
  }
  const isStalled = planned.some((action) => action.held === "stalled" && action.model === model.id);
  const present = conditionIn(model.conditions, "Present");
  return verdict(conditionIn(model.conditions, "Ready"), isStalled ? present : undefined);
}

function verdict(wanted: Condition | undefined, blocker: Condition | undefined): Verdict {
  if (!wanted) return { state: "waiting", reason: "NotObserved", message: "The first pass is not complete." };
  if (wanted.status === "True") return { state: "met", reason: wanted.reason, message: wanted.message };
  const { reason, message } = blocker ?? wanted;
  return { state: blocker || lasting.has(reason) ? "failed" : "waiting", reason, message };
}

function conditionIn(conditions: readonly Condition[], name: string): Condition | undefined {
  return conditions.find(({ type }) => type === name);
}
