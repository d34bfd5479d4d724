// The aliases of a cached model in the document: one is added, or removed.
import type { Catalog } from "../catalog/catalog.ts";
import { GatewayError } from "../core/errors.ts";
import { foldName, matchWholeName, normaliseName } from "../core/ids.ts";
import type { JsonObject } from "../core/json.ts";
import type { Desired, DesiredModel } from "../desired/document/document.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { Loop } from "../reconcile/loop.ts";
import type { Call } from "./in-force.ts";
import { keysToSet } from "./naming.ts";

export interface AliasDeps {
  readonly store: DesiredStore;
  readonly loop: Loop;
  readonly catalog: Catalog;
}

/** An alias that another model has moves; one that is a name of another model's file is refused. */
export function addAliasEdit({ store, loop, catalog }: AliasDeps) {
  return async (source: string, name: string, call: Call): Promise<void> => {
    const { model, variant } = catalog.named(source);
    if (variant)
      throw new GatewayError("invalid_request", `${source} is a variant of ${model.id}; copy the model itself`);
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
    }, call);
  };
}

/** False where it is no alias. */
export function removeAliasEdit({ store, catalog }: AliasDeps) {
  return async (name: string, call: Call): Promise<boolean> => {
    let removed = false;
    // A model's own id means the model, also if it is an alias too.
    if (catalog.list().some((view) => foldName(view.model.id) === foldName(name))) return false;
    await store.edit(({ document }) => {
      const models = without(document, name, null);
      removed = Object.keys(models).length > 0;
      return removed ? { patch: { models } } : null;
    }, call);
    return removed;
  };
}

function has(aliases: readonly string[], name: string): boolean {
  return aliases.some((alias) => foldName(alias) === foldName(name));
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
  const left = aliases.filter((alias) => foldName(alias) !== foldName(name));
  return left.length > 0 ? left : null;
}
