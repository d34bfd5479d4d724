// The models as clients see them: names resolved, with context sizes and loaded states. Pure.
import { contextInForce } from "../core/context-size.ts";
import { GatewayError } from "../core/errors.ts";
import { matchName, normaliseName } from "../core/ids.ts";
import type { Desired } from "../desired/document/document.ts";
import type { Router } from "../engines/llama/router.ts";
import type { Memory } from "../memory/memory.ts";
import type { Need } from "../memory/need.ts";
import { type CachedModel, findCached, isReadyValue } from "../plan/observed.ts";
import { ctxSizeIn, effectiveValues } from "../plan/preset-file.ts";
import { leavingSince } from "../plan/removals.ts";
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
  /** What it takes of memory; null: not known. A chat, which has a view too, does not ask. */
  readonly need: () => Need | null;
}

export type Catalog = ReturnType<typeof createCatalog>;

/** What names mean, by one snapshot of the cache and one document. */
interface Index {
  readonly pass: Pass | null;
  readonly document: Desired | null;
  readonly models: readonly CachedModel[];
  readonly byId: ReadonlyMap<string, CachedModel>;
  /** The models that the document's aliases mean, folded; `desired`: the id in the document, cached or not. */
  readonly byAlias: ReadonlyMap<string, { readonly desired: string; readonly model: CachedModel | undefined }>;
  /** By the model's id, as the document writes them. */
  readonly aliases: ReadonlyMap<string, readonly string[]>;
}

const emptyIndex: Index = {
  pass: null,
  document: null,
  models: [],
  byId: new Map(),
  byAlias: new Map(),
  aliases: new Map(),
};

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
    const listed = router.snapshot().models;
    const state = listed.state === "known" ? listed.value.find(({ id }) => id === model.upstreamId) : undefined;
    const preset = index.pass?.observed.preset;
    const values = preset?.state === "known" ? effectiveValues(preset.value, model.upstreamId) : noValues;
    const set = ctxSizeIn(values);
    return {
      model,
      aliases: index.aliases.get(model.id) ?? [],
      contextLength: contextInForce(set, model.nCtxTrain, state?.nCtx ?? null),
      contextSet: set,
      templateFile: values.get("chat-template-file") ?? null,
      projector: values.get("mmproj") ?? model.projector,
      status: state?.value ?? "unloaded",
      loaded: isReadyValue(state?.value),
      need: () => memory.known(model.upstreamId),
    };
  }

  function find(name: string): CachedModel | undefined {
    const { models, byId, byAlias } = current();
    const direct = byId.get(name);
    if (direct) return direct;
    const folded = foldAlias(name);
    const aliased = byAlias.get(folded)?.model;
    if (aliased && !models.some(({ id }) => id.toLowerCase() === folded)) return aliased;
    const match = matchName(name, models);
    return match.kind === "found" ? byId.get(match.id) : undefined;
  }

  return {
    find,
    /** Errors: `model_not_found` with the nearest ids. */
    resolve: (name: string): CachedModel => {
      const found = find(name);
      if (found) return found;
      const { models, byAlias } = current();
      const absent = absentReason(byAlias.get(foldAlias(name))?.desired ?? name);
      if (absent !== null) throw new GatewayError("model_not_found", `model '${name}' ${absent}`);
      const match = matchName(name, models);
      const nearest =
        match.kind === "missing" && match.nearest.length > 0 ? `; did you mean ${match.nearest.join(" or ")}?` : "";
      throw new GatewayError("model_not_found", `model '${name}' not found${nearest}`);
    },
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
  const byAlias = new Map<string, { desired: string; model: CachedModel | undefined }>();
  const aliases = new Map<string, readonly string[]>();
  for (const { id, aliases: given = [] } of document.models) {
    const model = given.length > 0 ? findCached(models, id) : undefined;
    for (const alias of given) byAlias.set(foldAlias(alias), { desired: id, model });
    if (model) aliases.set(model.id, [...(aliases.get(model.id) ?? []), ...given]);
  }
  return { pass, document, models, byId: new Map(models.map((model) => [model.id, model])), byAlias, aliases };
}

/** What two spellings of an alias have in common. */
export function foldAlias(name: string): string {
  return normaliseName(name).toLowerCase();
}
