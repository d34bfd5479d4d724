// Which actions under way the document no longer asks for. Pure.
import { equalJson } from "../core/json.ts";
import type { Desired } from "../desired/document/document.ts";
import type { Action, Plan, RunningAction } from "../plan/actions.ts";
import { speechKinds } from "../plan/observed.ts";
import { choiceKey } from "../plan/speech.ts";

/**
 * Keys of the actions to cancel. A transfer is cancelled when the document no longer names its model, or names it otherwise.
 * That the plan has no such action is no reason: the cache may be unreadable, or the model all but there.
 */
export function unwantedKeys(document: Desired, plan: Plan, running: readonly RunningAction[]): string[] {
  const named = new Set(document.models.map(({ id }) => id));
  const speech = speechKinds.map((kind) => choiceKey(kind, document.speech?.[kind] ?? ""));
  const planned = new Map(
    [...plan.held.map((held) => held.action), ...plan.actions].map((action) => [action.key, action]),
  );

  function isUnwanted({ action, lane }: RunningAction): boolean {
    const instead = planned.get(action.key);
    // While it drains nothing has happened yet: what is wanted by now would otherwise come after it, up to a minute later.
    if (action.kind === "router.reload") return !isSameReload(instead, action);
    // Its drain takes up to 30 s: time enough to put the model back.
    if (action.kind === "model.remove") return !action.requested && !plan.actions.some(({ key }) => key === action.key);
    if (lane === "speech-transfer")
      return !speech.includes(action.key) && !(action.kind === "voice.pull" && action.requested === true);
    if (lane !== "transfer" || !("model" in action)) return false;
    return instead ? !isSameTransfer(instead, action) : !named.has(action.model);
  }

  return running.filter(isUnwanted).map(({ action }) => action.key);
}

function isSameReload(instead: Action | undefined, action: Action & { readonly kind: "router.reload" }): boolean {
  return instead?.kind === "router.reload" && equalJson([...instead.changes], [...action.changes]);
}

function isSameTransfer(a: Action, b: Action): boolean {
  if (a.kind === "model.pull") return b.kind === "model.pull" && a.revision === b.revision;
  return a.kind === "model.import" && b.kind === "model.import" && a.source === b.source;
}
