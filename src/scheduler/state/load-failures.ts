// What comes of a load that failed: its requests are rejected with the reason, and the next one comes after a pause.
import { noteFailure } from "./load-backoff.ts";
import type { Model } from "./model.ts";
import { loadError, reject } from "./queues.ts";
import { emit, type State } from "./state.ts";

export function failLoad(state: State, model: Model, why: string): void {
  noteFailure(state, model, why);
  reject(state, model.id, loadError(model.id, why));
  emit(state, { kind: "loadFailed", id: model.id });
}
