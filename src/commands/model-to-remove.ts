// The model that a call deletes: only one that the name spells out, because files do not come back. Deletes nothing.

import { foldAlias } from "../catalog/alias-index.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { GatewayError } from "../core/errors.ts";
import { allEndingIn, matchName, matchWholeName, normaliseName } from "../core/ids.ts";
import type { DesiredStore } from "../desired/store.ts";
import { type CachedModel, findCached } from "../plan/observed.ts";
import { isMarked, removalsSince } from "../plan/removals.ts";
import type { Loop } from "../reconcile/loop.ts";

export interface NamedModels {
  readonly catalog: Catalog;
  readonly loop: Pick<Loop, "last">;
  readonly store: Pick<DesiredStore, "current">;
}

/** Errors: `model_not_found`, with the ids that may be meant. */
export function modelToRemove(deps: NamedModels, name: string): CachedModel {
  const candidates = removable(deps);
  const match = matchWholeName(name, candidates);
  const found =
    match.kind === "found"
      ? candidates.find((model) => model.id === match.id)
      : asTheDocumentHasIt(deps, name, candidates);
  if (found) return found;
  const awaited = namedInDocument(deps, name);
  if (awaited !== undefined) {
    throw new GatewayError(
      "model_not_found",
      `nothing of ${awaited} is here yet; taking it out of the document gives its pull up: PATCH /api/desired with {"models":{${JSON.stringify(awaited)}:null}}`,
    );
  }
  throw notSpelledOut(deps.catalog, name, candidates, match.kind === "missing" ? match.nearest : []);
}

/** By the id that it was pulled by, which leaves the document together with the model: a repeated call finds nothing. */
function asTheDocumentHasIt(
  { store }: NamedModels,
  name: string,
  candidates: readonly CachedModel[],
): CachedModel | undefined {
  const id = namedInDocument({ store }, name);
  return id === undefined ? undefined : findCached(candidates, id);
}

function namedInDocument({ store }: Pick<NamedModels, "store">, name: string): string | undefined {
  const folded = normaliseName(name).toLowerCase();
  return store.current().document.models.find(({ id }) => id.toLowerCase() === folded)?.id;
}

/** Also those that are not offered: shards that are missing are no reason to keep the others. */
function removable({ catalog, loop, store }: NamedModels): readonly CachedModel[] {
  const pass = loop.last();
  if (pass?.observed.cache.state !== "known") return catalog.list().map((view) => view.model);
  const removals = removalsSince(store.current().document, pass.desired.document);
  return pass.observed.cache.value.models.filter((model) => !removals.some((removal) => isMarked(removal, model)));
}

function notSpelledOut(
  catalog: Catalog,
  name: string,
  candidates: readonly CachedModel[],
  nearest: readonly string[],
): GatewayError {
  const meant = meantBy(catalog, name, candidates);
  if (meant instanceof GatewayError) return meant;
  const isAlias = catalog.view(meant)?.aliases.some((alias) => foldAlias(alias) === foldAlias(name)) ?? false;
  if (isAlias) {
    return new GatewayError(
      "model_not_found",
      `'${name}' is no model but another name of ${meant}, whose files go by that name alone`,
    );
  }
  const ending = allEndingIn(candidates, name).map(({ id }) => id);
  const near = [...new Set([...ending, meant, ...nearest])].slice(0, 3).join(" or ");
  return new GatewayError(
    "model_not_found",
    `model '${name}' not found, and files are deleted by a whole name alone; did you mean ${near}?`,
  );
}

/** The id that the name means in other calls, or why it means none. */
function meantBy(catalog: Catalog, name: string, candidates: readonly CachedModel[]): string | GatewayError {
  try {
    return catalog.resolve(name).id;
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== "model_not_found") throw error;
    const match = matchName(name, candidates);
    return match.kind === "found" ? match.id : error;
  }
}
