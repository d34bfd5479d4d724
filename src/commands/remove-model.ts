// Removes a model: marks it in the desired state, where no crash loses it, and waits until every trace is gone.

import type { Catalog } from "../catalog/catalog.ts";
import { GatewayError } from "../core/errors.ts";
import { normaliseName } from "../core/ids.ts";
import type { DesiredState, Removal } from "../desired/document/document.ts";
import type { DesiredStore, Edit } from "../desired/store.ts";
import type { Executor, RemovedFiles } from "../execute/executor.ts";
import type { CachedModel } from "../plan/observed.ts";
import { hasOwnCtxSize } from "../plan/preset-file.ts";
import { isMarked, pathInRepo, removalsSince } from "../plan/removals.ts";
import type { Loop, Pass } from "../reconcile/loop.ts";
import type { Call, Edits } from "./edits.ts";
import { untilInForce, type WaitDeps } from "./in-force.ts";
import { modelToRemove } from "./model-to-remove.ts";
import { leavingError, namesInDocument } from "./naming.ts";

export interface RemoveDeps extends WaitDeps {
  readonly store: DesiredStore;
  readonly catalog: Catalog;
  readonly executor: Pick<Executor, "follow">;
  /** ms */
  readonly now: () => number;
}

export function removeEdit(deps: RemoveDeps): Edits["remove"] {
  return async (name, call) => {
    // Asked once more while it goes: the same answer for both.
    const underWay = deps.store.current().document.removals.find((removal) => isNamed(removal, name));
    const model = underWay ? undefined : modelToRemove(deps, name);
    const id = underWay?.id ?? model?.id ?? name;
    if (call.dryRun) return { id, ...nothing, removedPresetSection: false };
    let removed: RemovedFiles | null = null;
    const unfollow = deps.executor.follow(`model/${id}`, {
      settled: (outcome) => {
        removed = outcome.removed ?? removed;
      },
    });
    try {
      const { generation, document } = await deps.store.edit(
        (state) => (model ? marking(deps, state, model, call) : null),
        call.by,
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

/** Removed from the document and marked, in one edit. Null if another call was faster. */
function marking(
  { loop, now }: { readonly loop: Loop; readonly now: () => number },
  { document }: DesiredState,
  model: CachedModel,
  call: Call,
): Edit | null {
  const pass = loop.last();
  const removals = removalsSince(document, pass?.desired.document ?? null);
  if (removals.some((removal) => isMarked(removal, model))) return null;
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
