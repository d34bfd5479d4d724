// The changes that a call may make. Each is one edit of the document, a wake of the loop, and a wait for the outcome; the routes
// only translate.
import { runnableContext } from "../core/context-size.ts";
import { GatewayError } from "../core/errors.ts";
import type { CachedModel } from "../plan/observed.ts";
import { presetCtxSize } from "../plan/preset-file.ts";
import type { Pass } from "../reconcile/loop.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { type Call, untilInForce, type WaitDeps } from "./in-force.ts";
import { addAliasEdit, isLeaving, keysToSet, leavingError, namesInDocument, removeAliasEdit } from "./naming.ts";
import { type PullDeps, pullEdit } from "./pull.ts";
import { type RemoveDeps, removeEdit } from "./remove.ts";
import { rosterEdits } from "./roster.ts";

export type EditsDeps = PullDeps & RemoveDeps & { readonly scheduler: Pick<Scheduler, "unload"> };

/** They resolve when the outcome is in force. Common errors: `model_not_found`, `invalid_request`, `suspended`, `wait_timeout`. */
export type Edits = ReturnType<typeof createEdits>;

export function createEdits(deps: EditsDeps) {
  return {
    setContextSize: contextSizeEdit(deps),
    eject: ejectEdit(deps),
    remove: removeEdit(deps),
    pull: pullEdit(deps),
    addAlias: addAliasEdit(deps),
    removeAlias: removeAliasEdit(deps),
    ...rosterEdits(deps),
  };
}

/** At most the trained context; too small a size is raised. Adopts a model that the document does not name. */
function contextSizeEdit(deps: Pick<EditsDeps, "store" | "catalog" | keyof WaitDeps>) {
  return async (
    name: string,
    asked: number,
    call: Call,
  ): Promise<{ readonly id: string; readonly ctxSize: number }> => {
    const model = deps.catalog.resolve(name);
    const ctxSize = checkedSize(model, asked);
    const { generation } = await deps.store.edit(({ document }) => {
      // A model that has two names there would have two sizes, of which the last counts.
      const keys = keysToSet(document, model, deps.loop.last());
      return { patch: { models: Object.fromEntries(keys.map((key) => [key, { ctxSize }])) } };
    }, call.by);
    const pass = await untilInForce(deps, { generation, call });
    return { id: model.id, ctxSize: sizeInForce(pass, model, ctxSize) };
  };
}

/** The size that the engine can run. Errors: `invalid_request`. */
function checkedSize(model: CachedModel, ctxSize: number): number {
  if (model.nCtxTrain !== null && ctxSize > model.nCtxTrain) {
    throw new GatewayError(
      "invalid_request",
      `ctx_size ${ctxSize} is more than the ${model.nCtxTrain} tokens that ${model.id} was trained for`,
    );
  }
  return runnableContext(ctxSize, model.nCtxTrain);
}

/** Another call may have set another size meanwhile: then that one counts, for this call too. */
function sizeInForce(pass: Pass, model: CachedModel, asked: number): number {
  const { desired, observed, plan } = pass;
  if (isLeaving(desired.document, model, pass)) throw leavingError(model);
  const preset = observed.preset.state === "known" ? observed.preset.value : null;
  const set = preset === null ? null : presetCtxSize(preset, model.upstreamId);
  if (set === asked) return asked;
  const { models } = desired.document;
  const names = namesInDocument(models, model, pass);
  const isStillAsked = models.some(({ id, ctxSize }) => ctxSize === asked && names.includes(id));
  const problem = plan.findings.get(model.id);
  if (isStillAsked && problem !== undefined) throw new GatewayError("not_supported", problem);
  return set ?? asked;
}

/** Drains and unloads a model; its files stay. The document does not change: requests decide what is loaded. */
function ejectEdit({ catalog, scheduler, status }: Pick<EditsDeps, "scheduler" | "catalog" | "status">) {
  return async (name: string): Promise<{ readonly id: string }> => {
    const model = catalog.resolve(name);
    // Continues without its client: a drain that ended with it would cut a response.
    await scheduler.unload(model.upstreamId, new AbortController().signal);
    const { router } = status();
    if (router.phase === "ready" && !router.connected)
      throw new GatewayError("router_unavailable", `the router does not respond: ${model.id} may still be loaded`);
    return { id: model.id };
  };
}
