// What a plan's changes mean for memory: of each model that it brings or changes, what it needs before and after.
import type { PlanBody } from "../../schemas/plan.ts";
import { toGatewayError } from "../core/errors.ts";
import type { Frozen } from "../core/json.ts";
import { unlessLeft } from "../core/unless-left.ts";
import { cachedIn } from "../plan/find-model.ts";
import type { Observed } from "../plan/observed.ts";
import { effectiveValues } from "../plan/preset-file.ts";
import { type PullPlan, pulledModels } from "./hub-models.ts";
import { type HubNeeds, modelsOf } from "./hub-needs.ts";
import type { Memory } from "./memory.ts";
import { fitsIn, type Need, totalOf } from "./need.ts";
import { type Question, questionOf } from "./question.ts";

export type PlannedMemory = NonNullable<Frozen<PlanBody>["memory"]>;

/** A person waits for it: what has not been estimated by then is told as not known. */
const patienceMs = 3_000;

export async function plannedMemory(
  memory: Pick<Memory, "limits">,
  hubNeeds: Pick<HubNeeds, "need">,
  before: Observed,
  whole: PullPlan,
): Promise<PlannedMemory> {
  const after = whole.end.world;
  const onHub = [...pulledModels(whole).values()].filter((model) => typeof model !== "string");
  const late = AbortSignal.timeout(patienceMs);
  const [limits, limitsNow] = [memory.limits(after.desired.memory), memory.limits()];
  const changes: PlannedMemory["changes"][number][] = [];
  const needs: (Need | null)[] = [];
  // What takes longer is kept for the next plan.
  const needOf = async (question: Question | null): Promise<Need | string> => {
    if (!question || late.aborted) return "it has not been asked yet";
    return unlessLeft(hubNeeds.need(question, onHub), late).catch((error: unknown) =>
      late.aborted ? "the engine is still being asked" : toGatewayError(error).message,
    );
  };
  for (const { id } of after.desired.models) {
    const [was, is] = [questionIn(before, id), questionIn(after.observed, id)];
    const found = await needOf(is);
    const to = typeof found === "string" ? null : found;
    needs.push(to);
    const fits = to && fitsIn(to.bytes, limits);
    // Also where nothing but the limits has changed.
    const hasFitted = to && fitsIn(to.bytes, limitsNow);
    if (was?.key === is?.key && fits === hasFitted) continue;
    const now = await needOf(was);
    changes.push({
      model: id,
      from: typeof now === "string" ? null : totalOf(now.bytes),
      to: to && totalOf(to.bytes),
      why: typeof found === "string" ? found : null,
      fits,
      onHub: is !== null && modelsOf(is, onHub).length > 0,
    });
  }
  const known = needs.filter((need) => need !== null);
  return {
    limits: Object.fromEntries(limits),
    changes,
    bytes: known.reduce((sum, { bytes }) => sum + totalOf(bytes), 0),
    unknown: needs.length - known.length,
  };
}

/** null: the model is not in the cache, or it is not known what it would be loaded with. */
function questionIn(observed: Observed, id: string): Question | null {
  const model = cachedIn(observed, id);
  const { preset } = observed;
  return model && preset.state === "known" ? questionOf(model, effectiveValues(preset.value, model.upstreamId)) : null;
}
