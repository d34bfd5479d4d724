// The names of a cached model in the document, when a call may add one, and its aliases there.
import { type Catalog, foldAlias } from "../catalog/catalog.ts";
import { GatewayError } from "../core/errors.ts";
import { matchWholeName, normaliseName } from "../core/ids.ts";
import type { JsonObject } from "../core/json.ts";
import type { Desired, DesiredModel } from "../desired/document/document.ts";
import type { DesiredStore } from "../desired/store.ts";
import { type CachedModel, findCached } from "../plan/observed.ts";
import { isMarked, leavingSince, pathInRepo } from "../plan/removals.ts";
import type { Loop, Pass } from "../reconcile/loop.ts";
import type { Call } from "./in-force.ts";

/** By the last snapshot of the cache. */
export function namesInDocument(models: readonly DesiredModel[], model: CachedModel, pass: Pass | null): string[] {
  const cache = pass?.observed.cache;
  const cached = cache?.state === "known" ? cache.value.models : [model];
  return models.filter(({ id }) => findCached(cached, id)?.id === model.id).map(({ id }) => id);
}

/** Its ids there, else its own, which adopts it. Inside the edit: naming a model cancels its removal. Errors: `model_not_found`. */
export function keysToSet(document: Desired, model: CachedModel, pass: Pass | null): readonly string[] {
  if (document.removals.some((removal) => isMarked(removal, model))) throw leavingError(model);
  const named = namesInDocument(document.models, model, pass);
  if (named.length > 0) return named;
  if (isLeaving(document, model, pass) || isBeingDeleted(model, pass)) throw leavingError(model);
  return [model.id];
}

/** Whether it is to be deleted, or has gone. */
export function isLeaving(document: Desired, model: CachedModel, pass: Pass | null): boolean {
  if (leavingSince(document, pass?.desired.document ?? null)(model)) return true;
  const cache = pass?.observed.cache;
  return cache?.state === "known" && !cache.value.models.some((other) => isSameFile(other, model));
}

/** Prunes too: naming the model does not cancel one that has begun. */
function isBeingDeleted({ upstreamId }: CachedModel, pass: Pass | null): boolean {
  const running = pass?.running ?? [];
  return running.some(({ action }) => action.kind === "model.remove" && action.disrupts.includes(upstreamId));
}

export function leavingError({ id }: CachedModel): GatewayError {
  return new GatewayError("model_not_found", `model '${id}' not found: it has been removed`);
}

/** Its id may be another model's by now. */
function isSameFile(a: CachedModel, b: CachedModel): boolean {
  return a.id === b.id && a.repo === b.repo && firstPath(a) === firstPath(b);
}

function firstPath(model: CachedModel): string {
  return pathInRepo(model, model.files[0] ?? "");
}

export interface AliasDeps {
  readonly store: DesiredStore;
  readonly loop: Loop;
  readonly catalog: Catalog;
}

/** An alias that another model has moves; one that is a name of another model's file is refused. */
export function addAliasEdit({ store, loop, catalog }: AliasDeps) {
  return async (source: string, name: string, call: Call): Promise<void> => {
    const model = catalog.resolve(source);
    const alias = normaliseName(name);
    const models = catalog.list().map((view) => view.model);
    const own = matchWholeName(alias, models);
    if (own.kind === "found" && own.id === model.id) return;
    if (own.kind === "found") throw new GatewayError("invalid_request", `${alias} is ${own.id} itself, another model`);
    await store.edit(({ document }) => {
      const [key = model.id] = keysToSet(document, model, loop.last());
      const given = document.models.find(({ id }) => id === key)?.aliases ?? [];
      const patch = {
        ...without(document, alias, key),
        ...(has(given, alias) ? {} : { [key]: { aliases: [...given, alias] } }),
      };
      return Object.keys(patch).length === 0 ? null : { patch: { models: patch } };
    }, call.by);
  };
}

/** False where it is no alias. */
export function removeAliasEdit({ store, catalog }: AliasDeps) {
  return async (name: string, call: Call): Promise<boolean> => {
    let removed = false;
    // A model's own id means the model, also if it is an alias too.
    if (catalog.list().some((view) => foldAlias(view.model.id) === foldAlias(name))) return false;
    await store.edit(({ document }) => {
      const models = without(document, name, null);
      removed = Object.keys(models).length > 0;
      return removed ? { patch: { models } } : null;
    }, call.by);
    return removed;
  };
}

function has(aliases: readonly string[], name: string): boolean {
  return aliases.some((alias) => foldAlias(alias) === foldAlias(name));
}

/** A patch that takes the alias from every model but one. */
function without({ models }: Desired, name: string, except: string | null): JsonObject {
  return Object.fromEntries(
    models
      .filter((model) => model.id !== except && has(model.aliases ?? [], name))
      .map((model) => [model.id, { aliases: remaining(model, name) }]),
  );
}

/** Null removes the field: an empty list has no meaning. */
function remaining({ aliases = [] }: DesiredModel, name: string): readonly string[] | null {
  const left = aliases.filter((alias) => foldAlias(alias) !== foldAlias(name));
  return left.length > 0 ? left : null;
}
