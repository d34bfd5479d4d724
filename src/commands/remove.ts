// Removes a model: marks it in the desired state, where no crash loses it, and waits until every trace is gone. Only a name that
// spells a model out deletes it, because files do not come back.
import type { RemovedFiles } from "../cache/removal/remove.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { cacheReadOnly, GatewayError } from "../core/errors.ts";
import { allEndingIn, foldName, matchName, matchWholeName } from "../core/ids.ts";
import type { DesiredState, Removal } from "../desired/document/document.ts";
import type { DesiredStore, Edit } from "../desired/store.ts";
import type { Executor } from "../execute/executor.ts";
import { findCached } from "../plan/find-model.ts";
import type { CachedModel } from "../plan/observed.ts";
import { hasOwnCtxSize } from "../plan/preset-file.ts";
import { isMarked, leavingSince, pathInRepo } from "../plan/removals.ts";
import type { Pass } from "../reconcile/loop.ts";
import type { Settings } from "../settings/settings.ts";
import { type Call, untilInForce, type WaitDeps } from "./in-force.ts";
import { leavingError, namesInDocument } from "./naming.ts";

export interface RemoveDeps extends WaitDeps {
  readonly store: DesiredStore;
  readonly catalog: Catalog;
  readonly executor: Pick<Executor, "follow">;
  readonly pulls: Settings["pulls"];
  /** ms */
  readonly now: () => number;
}

export interface RemoveCall extends Call {
  /** Returns what would be removed, and removes nothing. */
  readonly dryRun?: boolean;
}

export interface Removed extends RemovedFiles {
  readonly id: string;
  /** It had a context size of its own in router.preset.ini. */
  readonly removedPresetSection: boolean;
}

const nothing = { deletedFiles: 0, freedBytes: 0, removedPresetSection: false };

/** Unloads it, deletes its files, removes it from the document and the preset, and reloads the router. */
export function removeEdit(deps: RemoveDeps) {
  return async (name: string, call: RemoveCall): Promise<Removed> => {
    if (deps.pulls === "off" && !call.dryRun) throw cacheReadOnly();
    // Calls at the same time have the same result.
    const underWay = deps.store.current().document.removals.find(({ names }) => names.some((own) => isSame(own, name)));
    const model = underWay ? undefined : modelToRemove(deps, name);
    const id = underWay?.id ?? model?.id ?? name;
    if (call.dryRun) return { id, ...nothing };
    let removed: RemovedFiles | null = null;
    const unfollow = deps.executor.follow(`model/${id}`, {
      settled: (outcome) => {
        removed = outcome.removed ?? removed;
      },
    });
    try {
      const { generation, document } = await deps.store.edit(
        (state) => (model ? marking(deps, state, model, call) : null),
        call,
      );
      const mark = underWay ?? document.removals.find((removal) => model && isMarked(removal, model));
      // Another call's removal of it has ended meanwhile.
      if (model && !mark) throw leavingError(model);
      await untilInForce(deps, { generation, call, keys: [`model/${id}`], test: (pass) => isGone(pass, id, removed) });
      return { id, ...(removed ?? nothing), removedPresetSection: mark?.presetSection ?? false };
    } finally {
      unfollow();
    }
  };
}

function isGone({ desired: { document } }: Pass, id: string, removed: RemovedFiles | null): boolean {
  if (document.removals.some((removal) => removal.id === id)) return false;
  if (removed === null) throw new GatewayError("cancelled", `${id} was not removed: the document names it again`);
  return true;
}

/** Removed from the document and marked, in one edit. Null if another call was faster. */
function marking(
  { loop, now }: Pick<RemoveDeps, "loop" | "now">,
  { document }: DesiredState,
  model: CachedModel,
  call: Call,
): Edit | null {
  const pass = loop.last();
  if (leavingSince(document, pass?.desired.document ?? null)(model)) return null;
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

/** Errors: `model_not_found`, with the ids that may be meant. */
function modelToRemove(deps: RemoveDeps, name: string): CachedModel {
  const candidates = removable(deps);
  const match = matchWholeName(name, candidates);
  // The id that it was pulled by leaves the document together with the model: a repeated call finds nothing.
  const named = deps.store.current().document.models.find(({ id }) => isSame(id, name))?.id;
  const byName = named === undefined ? undefined : findCached(candidates, named);
  // By the whole id: findCached ignores case.
  const found = match.kind === "found" ? candidates.find(({ id }) => id === match.id) : byName;
  if (found) return found;
  if (named !== undefined)
    throw new GatewayError(
      "model_not_found",
      `nothing of ${named} is here yet; taking it out of the document cancels its pull: PATCH /api/desired with {"models":{${JSON.stringify(named)}:null}}`,
    );
  const views = deps.catalog.list();
  const isMeant = (other: string): boolean => foldName(other) === foldName(name);
  const aliased = views.find(({ aliases }) => aliases.some(isMeant));
  const varied = views.find(({ variants }) => variants.some((variant) => isMeant(variant.name)));
  const owner = aliased ?? varied;
  if (owner)
    throw new GatewayError(
      "model_not_found",
      `'${name}' is ${aliased ? "an alias" : "a variant"} of ${owner.model.id}: files are deleted by the model's id only`,
    );
  const short = matchName(name, candidates);
  const nearest = short.kind === "found" ? [short.id] : short.nearest;
  const near = [...new Set([...allEndingIn(candidates, name).map((model) => model.id), ...nearest])].slice(0, 3);
  const question = `, and files are deleted by a whole name only; did you mean ${near.join(" or ")}?`;
  throw new GatewayError("model_not_found", `model '${name}' not found${near.length > 0 ? question : ""}`);
}

/** Also those that are not offered: shards that are missing are no reason to keep the others. */
function removable({ catalog, loop, store }: RemoveDeps): readonly CachedModel[] {
  const pass = loop.last();
  if (pass?.observed.cache.state !== "known") return catalog.list().map((view) => view.model);
  const isLeaving = leavingSince(store.current().document, pass.desired.document);
  return pass.observed.cache.value.models.filter((model) => !isLeaving(model));
}

function isSame(own: string, name: string): boolean {
  return own.toLowerCase() === foldName(name);
}
