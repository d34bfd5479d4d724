// A model as the table has it: what is desired of it, what is so, what comes next. Pure.
import type { Desired, StatusBody } from "../client/index.ts";
import { amounts } from "../core/quantities.ts";
import { isStuck, isWrong, stateOf } from "../status/attention.ts";

export type Tone = "good" | "busy" | "bad" | "idle";

export type Model = StatusBody["models"][number];

type ModelInput = NonNullable<Desired["document"]["models"]>[number];
export type ModelDocument = Exclude<ModelInput, string>;

export interface ModelRow {
  readonly model: Model;
  /** null: the document does not name it. */
  readonly desired: ModelDocument | null;
  readonly desiredText: string;
  readonly state: string;
  readonly tone: Tone;
  readonly next: string;
  /** Its pull or import, while it is under way. */
  readonly transfer: StatusBody["running"][number] | null;
  readonly inFlight: number;
  readonly queued: number;
}

/** The document names a model by its id, or by an object that has it. */
function documentOf(desired: Desired | null, id: string): ModelDocument | null {
  const found = desired?.document.models?.find((each) => (typeof each === "string" ? each : each.id) === id);
  return typeof found === "string" ? { id: found } : (found ?? null);
}

export function modelRows(status: StatusBody, desired: Desired | null): ModelRow[] {
  return status.models.map((model) => {
    const document = model.desired ? documentOf(desired, model.id) : null;
    const running = status.running.find((action) => action.model === model.id) ?? null;
    const state = stateOf(model);
    return {
      model,
      desired: document,
      desiredText: model.desired ? desiredText(document, desired) : "not named",
      state,
      tone: toneOf(model, state),
      next: nextStep(model, status),
      transfer: running?.kind === "model.pull" || running?.kind === "model.import" ? running : null,
      inFlight: status.inFlight[model.id] ?? 0,
      queued: status.waiting.filter((wait) => wait.model === model.id).reduce((sum, { requests }) => sum + requests, 0),
    };
  });
}

function desiredText(document: ModelDocument | null, desired: Desired | null): string {
  const size = document?.ctxSize ?? desired?.document.context?.default;
  return [size === undefined ? "present" : `context ${size}`, ...(document?.pinned ? ["pinned"] : [])].join(", ");
}

function toneOf({ conditions }: Model, state: string): Tone {
  if (conditions.some(isWrong)) return "bad";
  if (state === "loaded" || state === "sleeping") return "good";
  return state === "unloaded" ? "idle" : "busy";
}

/** What happens to it by itself, as far as it is known. */
function nextStep({ id, desired, runtime }: Model, { running, planned, waiting }: StatusBody): string {
  const now = running.find((action) => action.model === id || action.disrupts.includes(id));
  if (now) return now.progress ? `${now.message}: ${amounts(now.progress)}` : now.message;
  const held = planned.find((action) => action.model === id);
  if (held) return `${held.message}, ${isStuck(held) ? "held" : "later"}: ${held.because}`;
  const wait = waiting.find(({ model }) => model === id);
  if (wait) return `${wait.requests} ${wait.requests === 1 ? "request waits" : "requests wait"} for ${waits[wait.for]}`;
  if (!runtime) return "–";
  if (runtime.state === "loading") return "answers once it is loaded";
  if (runtime.state === "unloaded") return firstRequest(runtime.evicts);
  return desired ? "none" : "stays until it is removed";
}

function firstRequest(evicts: readonly string[] | null): string {
  if (!evicts) return "does not fit beside the pinned models";
  return `loads with the first request${evicts.length > 0 ? `, which unloads ${evicts.join(", ")}` : ""}`;
}

const waits: Readonly<Record<StatusBody["waiting"][number]["for"], string>> = {
  load: "its load",
  drain: "a change of it",
  room: "a model slot",
  router: "the router",
  workers: "RPC workers",
  size: "another context size",
  turn: "its turn",
};
