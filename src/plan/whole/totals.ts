// What a whole plan comes to. Pure.
import type { ActionKind } from "../actions.ts";
import type { PlannedStep } from "./steps.ts";

/** `bytes`: of those whose size is known. */
export interface Sum {
  readonly count: number;
  readonly bytes: number;
  readonly unknown: number;
}

export interface Totals {
  readonly steps: number;
  /** Models, voices and transcription models to download. */
  readonly pull: Sum;
  readonly import: Sum;
  readonly delete: Sum;
  /** Loaded models whose instance ends, other than by a deletion: they load again with their next request. */
  readonly reload: number;
  /** Responses in flight that are awaited, and cut after the drain timeout. */
  readonly inFlight: number;
  /** Starts and restarts of the router. */
  readonly routerStarts: number;
}

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

function sumOf(steps: readonly PlannedStep[]): Sum {
  return {
    count: steps.length,
    bytes: steps.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0),
    unknown: steps.filter(({ bytes }) => bytes === null).length,
  };
}
