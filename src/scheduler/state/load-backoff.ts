// Models whose process ends in each load: such a load costs seconds, and may cost another model its slot, so the next one
// comes after a pause.
import { backoffDelay } from "../../core/backoff.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Model, State } from "./state.ts";
import type { FailingLoad } from "./types.ts";

const loadBackoff = { firstMs: 5_000, maxMs: 300_000 } as const;

/** Null also where the file or the settings are others by now: that load has not failed yet. */
export function failureOf(state: State, model: Model): FailingLoad | null {
  const { failing } = model;
  if (failing === null) return null;
  const identity = state.world.identity(model.id);
  if (identity === null || failing.identity === null || identity === failing.identity) return failing;
  model.failing = null;
  return null;
}

export function noteFailure(state: State, model: Model, message: string): void {
  const failures = (failureOf(state, model)?.failures ?? 0) + 1;
  const until = state.now + backoffDelay(failures, loadBackoff);
  model.failing = { failures, until, message, identity: state.world.identity(model.id) };
}

/** Why the model is not loaded now; null: it may be. `load_failing` */
export function backoffRefusal(state: State, model: Model): GatewayError | null {
  const failing = failureOf(state, model);
  if (failing === null || failing.until <= state.now) return null;
  const times = failing.failures === 1 ? "" : ` ${failing.failures} times in a row`;
  const retryAfterMs = failing.until - state.now;
  return new GatewayError(
    "load_failing",
    `${model.id} is not tried for another ${Math.ceil(retryAfterMs / 1000)} s, as loading it failed${times}: ${failing.message}`,
    { retryAfterMs },
  );
}

/** Models that have not been loaded since their last load failed, in backoff or not. */
export function failingLoads(state: State): ReadonlyMap<string, FailingLoad> {
  const failing = new Map<string, FailingLoad>();
  for (const model of state.models.values()) {
    const entry = failureOf(state, model);
    if (entry) failing.set(model.id, entry);
  }
  return failing;
}
