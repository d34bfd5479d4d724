// Models whose process ends in each load: such a load costs seconds, and may cost another model its slot, so the next one
// comes after a pause.
import { backoffDelay } from "../../core/backoff.ts";
import { GatewayError } from "../../core/errors.ts";
import type { FailingLoad } from "./events.ts";
import type { Model } from "./model.ts";
import type { State } from "./state.ts";

const loadBackoff = { firstMs: 5_000, maxMs: 300_000 } as const;

export function noteFailure(state: State, model: Model, message: string): void {
  const failures = (model.failing?.failures ?? 0) + 1;
  const until = state.now + backoffDelay(failures, loadBackoff);
  model.failing = { failures, until, message };
}

/** Why the model is not loaded now; null: it may be. `load_failing` */
export function backoffRefusal(state: State, model: Model): GatewayError | null {
  const { failing } = model;
  if (failing === null || failing.until <= state.now) return null;
  const times = failing.failures === 1 ? "" : ` ${failing.failures} times in a row`;
  const retryAfterMs = failing.until - state.now;
  return new GatewayError(
    "load_failing",
    `${model.id} is not tried for another ${Math.ceil(retryAfterMs / 1000)} s, as loading it failed${times}: ${failing.message}`,
    { retryAfterMs },
  );
}

/** `id` null: of all models. */
export function endBackoff({ models }: State, id: string | null): void {
  for (const model of models.values()) if (id === null || id === model.id) model.failing = model.fallback = null;
}

/** Models that have not been loaded since their last load failed, in backoff or not. */
export function failingLoads(state: State): ReadonlyMap<string, FailingLoad> {
  return new Map([...state.models.values()].flatMap(({ id, failing }) => (failing ? [[id, failing]] : [])));
}
