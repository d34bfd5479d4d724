// Chooses a context that the document leaves to the gateway: the largest that fits beside the pinned models, by what the engine says.
import { GatewayError } from "../core/errors.ts";
import type { ChosenContext } from "../plan/load-record.ts";
import type { CachedModel } from "../plan/observed.ts";
import { shareOf } from "./auto-context.ts";
import type { Memory } from "./memory.ts";
import type { ByDevice } from "./need.ts";
import { questionOf } from "./question.ts";
import { contextStep, largestContext } from "./remedy.ts";

/** A model to choose for, or a pinned one beside it. */
export interface Candidate {
  readonly model: CachedModel;
  /** What it is loaded with; without a context where that is chosen. */
  readonly values: ReadonlyMap<string, string>;
  readonly isChosen: boolean;
  readonly isPinned: boolean;
}

/** Both choose and stay, so they share what is left. */
export function isSharing(a: Candidate, b: Candidate): boolean {
  return a.isPinned && a.isChosen && b.isPinned && b.isChosen;
}

/** `chosen`: tokens of a pinned model that has chosen. Undefined: what is needed for it is not known yet. */
export async function chooseContext(
  candidate: Candidate,
  pinned: readonly Candidate[],
  memory: Pick<Memory, "need" | "needFor" | "why" | "limits">,
  chosen: (other: Candidate) => number | null,
): Promise<Omit<ChosenContext, "settings"> | undefined> {
  const { upstreamId, nCtxTrain } = candidate.model;
  if ([candidate, ...pinned].some(({ model }) => memory.need(model.upstreamId) === undefined)) return undefined;

  /** Errors: `engine_failed`. */
  async function needWith({ model, values }: Candidate, tokens: number): Promise<ByDevice> {
    const need = await memory.needFor(questionOf(model, new Map([...values, ["ctx-size", String(tokens)]])));
    if (!need) throw new GatewayError("engine_failed", "the engine cannot take its settings");
    return need.bytes;
  }

  /** Nothing where it cannot be known. */
  async function needOf(other: Candidate): Promise<ByDevice> {
    if (other.isChosen) return needWith(other, chosen(other) ?? contextStep);
    return memory.need(other.model.upstreamId)?.bytes ?? new Map();
  }

  try {
    const own = await needWith(candidate, contextStep);
    const sharing = pinned.filter((each) => isSharing(candidate, each));
    const others = pinned.filter((each) => !isSharing(candidate, each));
    const choosing = await Promise.all(sharing.map((each) => needWith(each, contextStep)));
    const share = shareOf(memory.limits(), { own, choosing, fixed: await Promise.all(others.map(needOf)) });
    const tokens = await largestContext((size) => needWith(candidate, size), share, nCtxTrain ?? contextStep);
    return { tokens, why: tokens === null ? "none fits beside the pinned models" : "" };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { tokens: null, why: memory.why(upstreamId) ?? error.message };
  }
}
