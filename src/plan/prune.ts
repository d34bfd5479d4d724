// When prune deletes: last, once everything else of the document is in sync, and not before its time. A typo in an id, a rename
// whose pull takes hours and the first half of a save have all deleted a model that only seemed to have left. Pure.
import type { Desired } from "../desired/document/document.ts";
import type { Candidate, PlanContext } from "./actions.ts";
import { isOfRepo, type Observed } from "./observed.ts";
import { type Pruned, pruneAction } from "./removals.ts";

/**
 * Those whose preset sections go now, as their files go next. Decided without preset and router, which are what these sections
 * change: else they would come back while they go.
 */
export function duePrunes(
  pruned: readonly Pruned[],
  models: readonly Candidate[],
  context: PlanContext,
): readonly Pruned[] {
  const isPulling = othersUnderWay(pruned, context).some((key) => key.startsWith("model/"));
  return models.length > 0 || isPulling ? [] : pruned.filter(({ dueAt }) => dueAt <= context.now);
}

/** `others`: what else is planned. */
export function planPruned(
  pruned: readonly Pruned[],
  others: readonly Candidate[],
  desired: Desired,
  observed: Observed,
  findings: ReadonlyMap<string, string>,
  context: PlanContext,
): Candidate[] {
  // Which sections there are is not known.
  if (observed.preset.state === "unknown") return [];
  const [planned] = others;
  const [underWay] = othersUnderWay(pruned, context);
  const first =
    planned?.action.message ??
    (underWay === undefined ? null : `${underWay} is in progress`) ??
    notInSync(desired, observed, findings);
  return pruned.map((going) => {
    const candidate = { action: pruneAction(going), notBefore: 0 };
    const isDue = going.dueAt <= context.now;
    if (isDue && first === null) return candidate;
    const because = [
      ...(isDue ? [] : [`a model stays for ${desired.pruneAfter} s after it left the document`]),
      ...(first === null ? [] : [`everything else comes first: ${first}`]),
    ];
    return { ...candidate, prune: { because: because.join("; "), until: isDue ? null : going.dueAt } };
  });
}

function othersUnderWay(pruned: readonly Pruned[], { underWay = [] }: PlanContext): string[] {
  return underWay.filter((key) => !pruned.some(({ id }) => key === `model/${id}`));
}

/** Why the document is not in force although nothing else is planned; null: it is. */
function notInSync(
  { models }: Desired,
  { cache, preset, router }: Observed,
  findings: ReadonlyMap<string, string>,
): string | null {
  const [left] = findings.values();
  if (left !== undefined) return left;
  const unseen = models.find(({ id }) => cache.state === "known" && isOfRepo(id, cache.value.unreadable));
  if (unseen) return `the folder of ${unseen.id} in the model cache cannot be read`;
  const isInForce = preset.state === "known" && router.loadedPreset === preset.value.text;
  if (isInForce && router.phase === "ready" && router.silentSince === null) return null;
  return "the router does not run with the preset file as it is";
}
