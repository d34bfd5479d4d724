// The models as clients see them: names resolved, with context sizes and loaded states. Pure.
import { contextInForce } from "../core/context-size.ts";
import { GatewayError } from "../core/errors.ts";
import { matchName, normaliseName } from "../core/ids.ts";
import type { Desired, DesiredModel } from "../desired/document/document.ts";
import type { Router } from "../engines/llama/router.ts";
import { type CachedModel, findCached, isReadyValue, type RouterModel } from "../plan/observed.ts";
import { ctxSizeIn, effectiveValues } from "../plan/preset-file.ts";
import { isMarked, removalsSince } from "../plan/removals.ts";
import { sectionProblem } from "../plan/wanted-preset.ts";
import type { Pass } from "../reconcile/loop.ts";

export interface ModelView {
  readonly model: CachedModel;
  /** Further names that the document gives it. */
  readonly aliases: readonly string[];
  /** Tokens that the router gives it; null where neither the preset nor the file has it. */
  readonly contextLength: number | null;
  /** What the preset sets, for the model or for all; the engine may give less. Null where it sets nothing. */
  readonly contextSet: number | null;
  /** Path of the chat template that the preset gives it in place of its own; null where it gives none. */
  readonly templateFile: string | null;
  /** Path of its projector: the one that the preset names, else the one beside it. */
  readonly projector: string | null;
  /** unloaded, loading, loaded, … */
  readonly status: string;
  readonly loaded: boolean;
}

export interface Catalog {
  /** Errors: `model_not_found` with the nearest ids. */
  resolve(name: string): CachedModel;
  list(): ModelView[];
  /** One model by its id; undefined where it has gone. */
  view(id: string): ModelView | undefined;
}

const noValues: ReadonlyMap<string, string> = new Map();

/** `absentReason`: why a named model is absent; null if the document does not name it. */
export function createCatalog(
  lastPass: () => Pass | null,
  router: Router,
  absentReason: (name: string) => string | null,
  document: () => Desired,
): Catalog {
  // While the cache cannot be read, its last known models are the best answer.
  let models: readonly CachedModel[] = [];
  let exact = new Map<string, CachedModel>();
  let seen: Pass | null = null;
  let seenDocument: Desired | null = null;
  let aliases = indexAliases([], []);

  function current(): readonly CachedModel[] {
    const pass = lastPass();
    // Not the pass's own: what a call has just changed counts for the next one.
    const desired = document();
    const news = pass !== null && pass !== seen && pass.observed.cache.state === "known";
    if (news) seen = pass;
    const cache = seen?.observed.cache;
    if (cache?.state === "known" && (news || desired !== seenDocument)) {
      seenDocument = desired;
      const removals = removalsSince(desired, seen?.desired.document ?? null);
      // Models that the preset file cannot name are not offered, nor those that are being deleted.
      models = cache.value.models
        .filter((model) => model.complete && (model.routerId !== null || sectionProblem(model) === null))
        .filter((model) => !removals.some((removal) => isMarked(removal, model)))
        .toSorted((a, b) => (a.id < b.id ? -1 : 1));
      exact = new Map(models.map((model) => [model.id, model]));
      aliases = indexAliases(desired.models, models);
    }
    return models;
  }

  function viewOf(model: CachedModel, state: RouterModel | undefined): ModelView {
    const preset = seen?.observed.preset;
    const values = preset?.state === "known" ? effectiveValues(preset.value, model.upstreamId) : noValues;
    const set = ctxSizeIn(values);
    return {
      model,
      aliases: aliases.of(model.id),
      contextLength: contextInForce(set, model.nCtxTrain, state?.nCtx ?? null),
      contextSet: set,
      templateFile: values.get("chat-template-file") ?? null,
      projector: values.get("mmproj") ?? model.projector,
      status: state?.value ?? "unloaded",
      loaded: isReadyValue(state?.value),
    };
  }

  return {
    resolve: (name) => {
      const all = current();
      const direct = exact.get(name);
      if (direct) return direct;
      const aliased = exact.get(aliases.find(name) ?? "");
      if (aliased && !all.some(({ id }) => id.toLowerCase() === normaliseName(name).toLowerCase())) return aliased;
      const match = matchName(name, all);
      const found = match.kind === "found" ? exact.get(match.id) : undefined;
      if (found) return found;
      const absent = absentReason(aliases.desired(name) ?? name);
      if (absent !== null) throw new GatewayError("model_not_found", `model '${name}' ${absent}`);
      const nearest =
        match.kind === "missing" && match.nearest.length > 0 ? `; did you mean ${match.nearest.join(" or ")}?` : "";
      throw new GatewayError("model_not_found", `model '${name}' not found${nearest}`);
    },
    list: () => {
      const all = current();
      const listed = router.snapshot().models;
      const states = new Map(listed.state === "known" ? listed.value.map((model) => [model.id, model]) : []);
      return all.map((model) => viewOf(model, states.get(model.upstreamId)));
    },
    view: (id) => {
      current();
      const model = exact.get(id);
      const listed = router.snapshot().models;
      const state = listed.state === "known" ? listed.value.find((entry) => entry.id === model?.upstreamId) : undefined;
      return model && viewOf(model, state);
    },
  };
}

/** The further names that the document gives models, by what a client may ask for. */
interface AliasIndex {
  /** As the document writes them. */
  of(id: string): readonly string[];
  /** The id of the cached model that a name means, ignoring case. */
  find(name: string): string | undefined;
  /** The id by which the document names the model, cached or not. */
  desired(name: string): string | undefined;
}

function indexAliases(desired: readonly DesiredModel[], cached: readonly CachedModel[]): AliasIndex {
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
