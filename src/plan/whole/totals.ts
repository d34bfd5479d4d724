// What a whole plan comes to. Pure.
import type { PlanBody } from "../../../schemas/plan.ts";
import type { Frozen } from "../../core/json.ts";
import type { ActionKind } from "../actions.ts";
import type { PlannedStep } from "./steps.ts";

/** The body has more: what is left, and what cannot be done. */
type Totals = Omit<Frozen<PlanBody>["totals"], "held" | "problems">;

const pulls: readonly ActionKind[] = ["model.pull", "voice.pull", "transcription.pull"];

export function totalsOf(steps: readonly PlannedStep[]): Totals {
  const of = (...kinds: readonly ActionKind[]): readonly PlannedStep[] =>
    steps.filter(({ action }) => kinds.includes(action.kind));
  const ends = steps.flatMap((step) => step.ends.map((end) => ({ ...end, kind: step.action.kind })));
  return {
    steps: steps.length,
    pull: sumOf(of(...pulls)),
    import: sumOf(of("model.import")),
    delete: sumOf(of("model.remove")),
    reload: new Set(ends.flatMap(({ kind, model }) => (kind === "model.remove" ? [] : model))).size,
    inFlight: ends.reduce((sum, { inFlight }) => sum + inFlight, 0),
    routerStarts: of("router.start", "router.restart").length,
  };
}

function sumOf(steps: readonly PlannedStep[]): Totals["pull"] {
  return {
    count: steps.length,
    bytes: steps.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0),
    unknown: steps.filter(({ bytes }) => bytes === null).length,
  };
}
