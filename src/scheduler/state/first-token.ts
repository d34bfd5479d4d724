// A process is given no request before it has given a token, however its load began: one was seen that was healthy and answered
// every request with 500 (llama.cpp#27309). One that gives none is a failed load, and is unloaded.
import type { TokenAnswer } from "../../core/token-answer.ts";
import { failSettings } from "./fallbacks.ts";
import type { FirstToken, Model } from "./model.ts";
import { emit, modelOf, type State, wake } from "./state.ts";
import { beginUnload } from "./unloads.ts";

/** ms until a process that did not respond is asked again, and until one that is still there is unloaded again. */
const againMs = 1_000;

/** Asks each process that is new, and forgets those that are gone. */
export function followFirstTokens(state: State): void {
  const { load, now } = state;
  const { loaded } = state.world;
  for (const model of state.models.values())
    if (loaded.get(model.id)?.origin !== model.firstToken?.origin) model.firstToken = null;
  for (const [id, { origin }] of loaded) {
    const model = modelOf(state, id);
    if (model.firstToken) continue;
    model.firstToken = { origin, since: now, state: "asked", againAt: Number.POSITIVE_INFINITY, ms: 0, why: "" };
    if (load?.id === id) load.progressAt = now;
    emit(state, { kind: "askToken", id });
  }
}

export function tokenAnswered(state: State, id: string, origin: string, answer: TokenAnswer): void {
  const model = modelOf(state, id);
  const { firstToken } = model;
  // A token of a process that is on its way out comes too late: a load that had timed out would count as one that worked.
  if (firstToken?.origin !== origin || firstToken.state !== "asked" || model.unload) return;
  if (answer.kind === "given") {
    firstToken.state = "given";
    firstToken.ms = state.now - firstToken.since;
    model.firstTryAt = null;
    model.isShort = false;
    model.failing = null;
    emit(state, { kind: "loadVerified", id });
  } else if (answer.kind === "refused") refuse(state, model, firstToken, `it gives no token: ${answer.why}`);
  else {
    firstToken.againAt = state.now + againMs;
    emit(state, { kind: "readList" });
  }
}

function refuse(state: State, model: Model, firstToken: FirstToken, why: string): void {
  firstToken.state = "refused";
  firstToken.againAt = state.now;
  firstToken.why = why;
  // The load is over once the process is gone: until then it has the model slot and the workers.
  if (state.load?.id === model.id) state.load.isUnwanted = true;
  failSettings(state, model, why);
}

/** A token is waited for as long as a load may take. */
export function settleFirstTokens(state: State): void {
  const { loadTimeoutMs } = state.limits;
  for (const model of state.models.values()) {
    const { firstToken } = model;
    if (firstToken === null || firstToken.state === "given") continue;
    if (firstToken.state === "asked") {
      const deadline = firstToken.since + loadTimeoutMs;
      if (state.now < deadline) wake(state, deadline);
      // One that is on its way out has failed already: a request that came meanwhile was refused for it.
      else if (model.unload === null)
        refuse(state, model, firstToken, `it gave no token within ${loadTimeoutMs / 1000} s`);
    }
    repeat(state, model, firstToken);
  }
}

function repeat(state: State, model: Model, firstToken: FirstToken): void {
  const isAsked = firstToken.state === "asked";
  // What stands against an unload ends with an event.
  if (!isAsked && (model.unload !== null || !state.world.isReady)) return;
  if (firstToken.againAt > state.now) return wake(state, firstToken.againAt);
  if (isAsked) {
    firstToken.againAt = Number.POSITIVE_INFINITY;
    emit(state, { kind: "askToken", id: model.id });
  } else {
    firstToken.againAt = state.now + againMs;
    beginUnload(state, model, "request");
  }
}
