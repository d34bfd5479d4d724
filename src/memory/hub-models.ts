// Models that are still on the hub: where their files will lie, and what the hub has of them. Pure.
import { basename } from "node:path";
import { blobName, type HubFile, type Selection } from "../cache/layout/select.ts";
import { parseModelId, repoOf } from "../core/ids.ts";
import type { Plan } from "../plan/actions.ts";
import { cachedIn } from "../plan/find-model.ts";
import type { CachedModel } from "../plan/observed.ts";
import { type HubAnswer, isPull, questionOf as pullQuestionOf } from "../plan/whole/hub-answers.ts";
import type { PlanEnd, WholePlan } from "../plan/whole/steps.ts";
import type { ModelFiles } from "./question.ts";

export interface HubModel {
  readonly repo: string;
  readonly commit: string;
  readonly files: readonly {
    /** Absolute, once it is pulled. */
    readonly path: string;
    readonly file: HubFile;
    /** Of a projector the size is enough, as it is loaded whole. */
    readonly isModel: boolean;
  }[];
}

/** Of a plan to the end: what it pulls, what the hub has of that, and what comes of it. */
export interface PullPlan extends Pick<WholePlan, "answers"> {
  readonly now: Pick<Plan, "actions" | "held">;
  readonly end: Pick<PlanEnd, "world">;
}

/** The models that a plan pulls, by their ids in the document; a text: why the hub has no answer. */
export function pulledModels({ now, answers, end }: PullPlan) {
  const pulls = [...now.actions, ...now.held.map(({ action }) => action)].filter(isPull);
  const found = new Map<string, HubModel | string>();
  for (const pull of pulls) {
    if (pull.kind !== "model.pull") continue;
    const cached = cachedIn(end.world.observed, pull.model);
    const known = answerFor(pull.model, answers?.get(pullQuestionOf(pull)), cached);
    found.set(pull.model, known);
  }
  return found;
}

function answerFor(id: string, answer: HubAnswer | undefined, cached: CachedModel | undefined): HubModel | string {
  const parsed = parseModelId(id);
  if (answer?.kind === "refused") return answer.failure.message;
  if (answer?.kind === "unknown") return answer.why;
  if (answer?.kind !== "files" || !parsed || !cached) return "the hub was not asked";
  const paths = new Map([...cached.files, cached.projector ?? ""].map((path) => [basename(path), path]));
  const files = answer.files.flatMap((file) => {
    const path = paths.get(basename(file.path));
    return path === undefined ? [] : [{ path, file, isModel: path !== cached.projector }];
  });
  return { repo: repoOf(parsed), commit: answer.commit, files };
}

/** A model of a repository that nothing asks for, as if it were in a cache. */
export function listedModel(
  at: Pick<HubModel, "repo" | "commit">,
  { model, projector }: Selection,
): { readonly hubModel: HubModel; readonly model: ModelFiles } {
  // In a folder of their content: a projector's path is part of what an estimate is kept by.
  const pathOf = (file: HubFile): string => `/${blobName(file)}/${basename(file.path)}`;
  const all = [...model, ...(projector ? [projector] : [])];
  return {
    hubModel: { ...at, files: all.map((file) => ({ path: pathOf(file), file, isModel: file !== projector })) },
    model: {
      files: model.map(pathOf),
      blobs: model.map(blobName),
      projector: projector && pathOf(projector),
      bytes: model.reduce((sum, { size }) => sum + size, 0),
      modifiedAt: 0,
    },
  };
}
