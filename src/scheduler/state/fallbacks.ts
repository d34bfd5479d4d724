// Settings that fail give way to the last ones that worked: the requests of the model wait until the router has read those.
import { failLoad } from "./load-failures.ts";
import type { Model } from "./model.ts";
import { emit, type State, wake } from "./state.ts";

/** How long a preset may take to be written and read, which takes tens of ms. */
const mostMs = 10_000;

/** A load that failed for what was asked of the engine, and not for the machine. */
export function failSettings(state: State, model: Model, why: string): void {
  if (!state.world.hasFallback(model.id)) return failLoad(state, model, why);
  model.fallback = { since: state.now, why };
  emit(state, { kind: "fallBack", id: model.id, why });
}

export function settleFallbacks(state: State): void {
  for (const model of state.models.values()) {
    const { fallback } = model;
    if (fallback === null) continue;
    if (state.now < fallback.since + mostMs) wake(state, fallback.since + mostMs);
    else {
      model.fallback = null;
      failLoad(state, model, fallback.why);
    }
  }
}
