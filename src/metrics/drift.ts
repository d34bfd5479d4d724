// Counts how often the machine drifted from the document and was brought back: a document that was in force once, differs again
// without an edit, and is in force again after actions that did that. Pure.
import type { Action } from "../plan/actions.ts";

/** Asked for by a request, or due by time: no difference that came from outside. */
const asked: ReadonlySet<Action["kind"]> = new Set(["cache.gc", "model.remove", "speech.start", "speech.stop"]);

export class DriftCounter {
  mended = 0;
  #generation = -1;
  /** It was in force once. */
  #wasInForce = false;
  #isMending = false;

  passed(generation: number, isInForce: boolean): void {
    if (generation !== this.#generation) {
      this.#generation = generation;
      this.#wasInForce = this.#isMending = false;
    }
    if (!isInForce) return;
    if (this.#isMending) this.mended++;
    this.#wasInForce = true;
    this.#isMending = false;
  }

  succeeded(action: Action): void {
    if (this.#wasInForce && !asked.has(action.kind) && !("requested" in action)) this.#isMending = true;
  }
}
