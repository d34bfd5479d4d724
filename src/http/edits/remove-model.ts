// Removes a model: marks it in the desired state, where no crash loses it, and waits until every trace is gone.
import { GatewayError } from "../../core/errors.ts";
import { matchName, normaliseName } from "../../core/ids.ts";
import type { DesiredState, Removal } from "../../desired/document.ts";
import type { DesiredStore, Edit } from "../../desired/store.ts";
import type { Executor, RemovedFiles } from "../../execute/executor.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { hasOwnCtxSize } from "../../plan/preset-file.ts";
import { isMarked, pathInRepo } from "../../plan/removals.ts";
import type { Loop, Pass } from "../../reconcile/loop.ts";
import type { Catalogue } from "../catalogue.ts";
import type { Call, Edits } from "./edits.ts";
import { untilInForce, type WaitDeps } from "./in-force.ts";
import { namesInDocument } from "./naming.ts";

export interface RemoveDeps extends WaitDeps {
  readonly store: DesiredStore;
  readonly catalogue: Pick<Catalogue, "resolve">;
  readonly executor: Pick<Executor, "follow">;
  /** ms */
  readonly now: () => number;
}

export function removeEdit(deps: RemoveDeps): Edits["remove"] {
  const standing = (id: string): Removal | undefined =>
    deps.store.current().document.removals.find((removal) => removal.id === id);

  return async (name, call) => {
    // Asked once more while it goes: the same answer for both.
    const underWay = deps.store.current().document.removals.find((removal) => isNamed(removal, name));
    const model = underWay ? undefined : cachedModel(deps, name);
    const id = underWay?.id ?? model?.id ?? name;
    let removed: RemovedFiles | null = null;
    const unfollow = deps.executor.follow(`model/${id}`, {
      settled: (outcome) => {
        removed = outcome.removed ?? removed;
      },
    });
    try {
      const { generation } = await deps.store.edit(
        (state) => (model ? marking(deps, state, model, call) : null),
        call.by,
      );
      const presetSection = (underWay ?? standing(id))?.presetSection ?? false;
      await untilInForce(deps, { generation, call, keys: [`model/${id}`], test: (pass) => isGone(pass, id, removed) });
      return { id, ...(removed ?? nothing), removedPresetSection: presetSection };
    } finally {
      unfollow();
    }
  };
}

const nothing: RemovedFiles = { deletedFiles: 0, freedBytes: 0 };

function isGone({ desired: { document } }: Pass, id: string, removed: RemovedFiles | null): boolean {
  if (document.removals.some((removal) => removal.id === id)) return false;
  if (removed === null) throw new GatewayError("cancelled", `${id} was not removed: the document names it again`);
  return true;
}

function isNamed({ names }: Removal, name: string): boolean {
  const folded = normaliseName(name).toLowerCase();
  return names.some((own) => own.toLowerCase() === folded);
}

/** Also one that is not offered: shards that are missing are no reason to keep the others. */
function cachedModel({ catalogue, loop, store }: RemoveDeps, name: string): CachedModel {
  try {
    return catalogue.resolve(name);
  } catch (error) {
    const cache = loop.last()?.observed.cache;
    if (!(error instanceof GatewayError) || error.code !== "model_not_found" || cache?.state !== "known") throw error;
    const { removals } = store.current().document;
    const left = cache.value.models.filter((model) => !removals.some((removal) => isMarked(removal, model)));
    const match = matchName(name, left);
    const found = match.kind === "found" ? left.find((model) => model.id === match.id) : undefined;
    if (!found) throw error;
    return found;
  }
}

/** Out of the document and marked, in one. Null where somebody else was quicker. */
function marking(
  { loop, now }: { readonly loop: Loop; readonly now: () => number },
  { document }: DesiredState,
  model: CachedModel,
  call: Call,
): Edit | null {
  if (document.removals.some((removal) => isMarked(removal, model))) return null;
  const pass = loop.last();
  const preset = pass?.observed.preset;
  const named = namesInDocument(document.models, model, pass);
  const removal: Removal = {
    id: model.id,
    repo: model.repo,
    names: [...new Set([model.id, ...model.aliases, ...named])],
    commit: model.commit,
    files: model.files.map((file) => pathInRepo(model, file)),
    projector: model.projector === null ? null : pathInRepo(model, model.projector),
    presetSection: preset?.state === "known" && hasOwnCtxSize(preset.value, model.upstreamId),
    blobs: [],
    requestedAt: new Date(now()).toISOString(),
    by: call.by,
  };
  const patch = named.length === 0 ? {} : { models: Object.fromEntries(named.map((name) => [name, null])) };
  return { patch, removal };
}
