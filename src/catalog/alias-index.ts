// The further names that the document gives models, by what a client may ask for. Pure.
import { normaliseName } from "../core/ids.ts";
import type { DesiredModel } from "../desired/document/document.ts";
import { type CachedModel, findCached } from "../plan/observed.ts";

export interface AliasIndex {
  /** As the document writes them. */
  of(id: string): readonly string[];
  /** The id of the cached model that a name means, ignoring case. */
  find(name: string): string | undefined;
  /** The id by which the document names the model, cached or not. */
  desired(name: string): string | undefined;
}

export function indexAliases(desired: readonly DesiredModel[], cached: readonly CachedModel[]): AliasIndex {
  const byModel = new Map<string, string[]>();
  const cachedIds = new Map<string, string>();
  const desiredIds = new Map<string, string>();
  for (const { id, aliases = [] } of desired) {
    if (aliases.length === 0) continue;
    const model = findCached(cached, id);
    if (model) byModel.set(model.id, [...(byModel.get(model.id) ?? []), ...aliases]);
    for (const alias of aliases.map(foldAlias)) {
      desiredIds.set(alias, id);
      if (model) cachedIds.set(alias, model.id);
    }
  }
  return {
    of: (id) => byModel.get(id) ?? [],
    find: (name) => cachedIds.get(foldAlias(name)),
    desired: (name) => desiredIds.get(foldAlias(name)),
  };
}

/** What two spellings of an alias have in common. */
export function foldAlias(name: string): string {
  return normaliseName(name).toLowerCase();
}
