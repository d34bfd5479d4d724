// Sets the context size of a model in the document, and waits until it is in force.
import type { Catalog } from "../catalog/catalog.ts";
import { runnableContext } from "../core/context-size.ts";
import { GatewayError } from "../core/errors.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { CachedModel } from "../plan/observed.ts";
import { presetCtxSize } from "../plan/preset-file.ts";
import type { Pass } from "../reconcile/loop.ts";
import { type Call, untilInForce, type WaitDeps } from "./in-force.ts";
import { isLeaving, keysToSet, leavingError, namesInDocument } from "./naming.ts";

/** At most the trained context; too small a size is raised. Adopts a model that the document does not name. */
export function contextSizeEdit(deps: WaitDeps & { readonly store: DesiredStore; readonly catalog: Catalog }) {
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
    }, call);
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
