// The models as clients see them: names resolved, with context sizes and loaded states. Pure.
import { contextInForce } from "../core/context-size.ts";
import { GatewayError } from "../core/errors.ts";
import { foldName, matchName } from "../core/ids.ts";
import type { Desired, Variant } from "../desired/document/document.ts";
import type { Router } from "../engines/llama/router.ts";
import type { Memory } from "../memory/memory.ts";
import type { Need } from "../memory/need.ts";
import { findCached, findListed } from "../plan/find-model.ts";
import { type CachedModel, isReadyValue } from "../plan/observed.ts";
import { ctxSizeIn, effectiveValues } from "../plan/preset-file.ts";
import { leavingSince } from "../plan/removals.ts";
import { sectionProblem } from "../plan/wanted-preset.ts";
import type { Pass } from "../reconcile/loop.ts";

export interface ModelView {
  readonly model: CachedModel;
  /** Further names that the document gives it. */
  readonly aliases: readonly string[];
  readonly variants: readonly Variant[];
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
  /** What it takes of memory; null: not known. A chat, which has a view too, does not ask. */
  readonly need: () => Need | null;
}

export type Catalog = ReturnType<typeof createCatalog>;

/** What a name means. */
export interface Named {
  readonly model: CachedModel;
  /** Null: the name is the model's own, or an alias. */
  readonly variant: Variant | null;
}

/** What names mean, by one snapshot of the cache and one document. */
interface Index {
  readonly pass: Pass | null;
  readonly document: Desired | null;
  readonly models: readonly CachedModel[];
  readonly byId: ReadonlyMap<string, CachedModel>;
  /** What the document's aliases and names of variants mean, folded. */
  readonly byName: ReadonlyMap<string, Meaning>;
  /** By the model's id, as the document writes them. */
  readonly given: ReadonlyMap<string, GivenNames>;
  /** Names that clients used and that are no ids: to look one up among 1,000 models took 0.9 ms of each chat. */
  readonly found: Map<string, Named>;
}

interface Meaning {
  /** The id in the document, cached or not. */
  readonly desired: string;
  readonly model: CachedModel | undefined;
  readonly variant: Variant | null;
}

type GivenNames = Pick<ModelView, "aliases" | "variants">;

const emptyIndex: Index = {
  pass: null,
  document: null,
  models: [],
  byId: new Map(),
  byName: new Map(),
  given: new Map(),
  found: new Map(),
};

const noNames: GivenNames = { aliases: [], variants: [] };

/** A client may send a name in any number of spellings, with 64 KiB of blanks around it. */
const [longestFound, mostFound] = [500, 1_000];

const noValues: ReadonlyMap<string, string> = new Map();

/** `absentReason`: why a named model is absent; null if the document does not name it. */
export function createCatalog(
  lastPass: () => Pass | null,
  router: Router,
  absentReason: (name: string) => string | null,
  document: () => Desired,
  memory: Pick<Memory, "known">,
) {
  let index = emptyIndex;

  function current(): Index {
    const last = lastPass();
    // While the cache cannot be read, its last known models are the best answer.
    const pass = last?.observed.cache.state === "known" ? last : index.pass;
    // Not the pass's own: what a call has just changed counts for the next one.
    const desired = document();
    if (pass && (pass !== index.pass || desired !== index.document)) index = indexOf(pass, desired);
    return index;
  }

  function viewOf(model: CachedModel): ModelView {
    const state = findListed(router.models(), model.upstreamId);
    const preset = index.pass?.observed.preset;
    const values = preset?.state === "known" ? effectiveValues(preset.value, model.upstreamId) : noValues;
    const set = ctxSizeIn(values);
    return {
      model,
      ...(index.given.get(model.id) ?? noNames),
      contextLength: contextInForce(set, model.nCtxTrain, state?.nCtx ?? null),
      contextSet: set,
      templateFile: values.get("chat-template-file") ?? null,
      projector: values.get("mmproj") ?? model.projector,
      status: state?.value ?? "unloaded",
      loaded: isReadyValue(state?.value),
      need: () => memory.known(model.upstreamId),
    };
  }

  function find(name: string): Named | undefined {
    const { byId, found } = current();
    const direct = byId.get(name);
    if (direct) return { model: direct, variant: null };
    const meant = found.get(name) ?? search(name);
    if (meant && name.length <= longestFound && found.size < mostFound) found.set(name, meant);
    return meant;
  }

  function search(name: string): Named | undefined {
    const { models, byId, byName } = current();
    const folded = foldName(name);
    const { model: given, variant = null } = byName.get(folded) ?? {};
    if (given && !models.some(({ id }) => id.toLowerCase() === folded)) return { model: given, variant };
    const match = matchName(name, models);
    const model = match.kind === "found" ? byId.get(match.id) : undefined;
    return model && { model, variant: null };
  }

  /** Errors: `model_not_found` with the nearest ids. */
  function named(name: string): Named {
    const found = find(name);
    if (found) return found;
    const { models, byName } = current();
    const absent = absentReason(byName.get(foldName(name))?.desired ?? name);
    if (absent !== null) throw new GatewayError("model_not_found", `model '${name}' ${absent}`);
    const match = matchName(name, models);
    const nearest =
      match.kind === "missing" && match.nearest.length > 0 ? `; did you mean ${match.nearest.join(" or ")}?` : "";
    throw new GatewayError("model_not_found", `model '${name}' not found${nearest}`);
  }

  return {
    named,
    find: (name: string): CachedModel | undefined => find(name)?.model,
    /** The model alone. Errors: `model_not_found` with the nearest ids. */
    resolve: (name: string): CachedModel => named(name).model,
    list: () => current().models.map(viewOf),
    /** One model by its id; undefined where it has gone. */
    view: (id: string): ModelView | undefined => {
      const model = current().byId.get(id);
      return model && viewOf(model);
    },
  };
}

function indexOf(pass: Pass, document: Desired): Index {
  const { cache } = pass.observed;
  const isLeaving = leavingSince(document, pass.desired.document);
  // Models that the preset file cannot name are not offered, nor those that are being deleted.
  const models = (cache.state === "known" ? cache.value.models : [])
    .filter((model) => model.complete && (model.routerId !== null || sectionProblem(model) === null))
    .filter((model) => !isLeaving(model))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const byName = new Map<string, Meaning>();
  const given = new Map<string, GivenNames>();
  for (const { id, aliases = [], variants = [] } of document.models) {
    const model = aliases.length + variants.length > 0 ? findCached(models, id) : undefined;
    for (const alias of aliases) byName.set(foldName(alias), { desired: id, model, variant: null });
    for (const variant of variants) byName.set(foldName(variant.name), { desired: id, model, variant });
    const before = (model && given.get(model.id)) ?? noNames;
    if (model)
      given.set(model.id, {
        aliases: [...before.aliases, ...aliases],
        variants: [...before.variants, ...variants],
      });
  }
  return {
    pass,
    document,
    models,
    byId: new Map(models.map((model) => [model.id, model])),
    byName,
    given,
    found: new Map(),
  };
}
