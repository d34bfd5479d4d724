// The models as clients see them: names resolved, context sizes and loaded states told.
import { GatewayError } from "../core/errors.ts";
import { matchName } from "../core/ids.ts";
import type { Router } from "../engines/router.ts";
import type { CachedModel } from "../plan/observed.ts";
import { presetCtxSize } from "../plan/preset-file.ts";
import { sectionProblem } from "../plan/wanted-preset.ts";
import type { Pass } from "../reconcile/loop.ts";

export interface ModelView {
  readonly model: CachedModel;
  /** Tokens that the router gives it; null where neither the preset nor the file says. */
  readonly contextLength: number | null;
  /** unloaded, loading, loaded, … */
  readonly status: string;
  readonly loaded: boolean;
}

export interface Catalogue {
  /** Errors: `model_not_found` with the nearest ids. */
  resolve(name: string): CachedModel;
  list(): ModelView[];
}

/** `absentReason`: why a model that the document names is not in the cache; null for one that it does not name. */
export function createCatalogue(
  lastPass: () => Pass | null,
  router: Router,
  absentReason: (name: string) => string | null,
): Catalogue {
  // While the cache cannot be read, what it held a moment ago is the best that anybody knows.
  let models: readonly CachedModel[] = [];
  let exact = new Map<string, CachedModel>();
  let seen: Pass | null = null;

  function current(): readonly CachedModel[] {
    const pass = lastPass();
    if (pass && pass !== seen && pass.observed.cache.state === "known") {
      seen = pass;
      // What the router cannot be told of is not offered either.
      models = pass.observed.cache.value.models
        .filter((model) => model.complete && (model.routerId !== null || sectionProblem(model) === null))
        .toSorted((a, b) => (a.id < b.id ? -1 : 1));
      exact = new Map(models.map((model) => [model.id, model]));
    }
    return models;
  }

  return {
    resolve: (name) => {
      const all = current();
      const direct = exact.get(name);
      if (direct) return direct;
      const match = matchName(name, all);
      const found = match.kind === "found" ? exact.get(match.id) : undefined;
      if (found) return found;
      const absent = absentReason(name);
      if (absent !== null)
        throw new GatewayError("model_not_found", `model '${name}' is in the document but not here yet: ${absent}`);
      const nearest =
        match.kind === "missing" && match.nearest.length > 0 ? `; did you mean ${match.nearest.join(" or ")}?` : "";
      throw new GatewayError("model_not_found", `model '${name}' not found${nearest}`);
    },
    list: () => {
      const all = current();
      const listed = router.snapshot().models;
      const states = new Map(listed.state === "known" ? listed.value.map((model) => [model.id, model]) : []);
      const preset = seen?.observed.preset;
      return all.map((model) => {
        const state = states.get(model.upstreamId);
        const set = preset?.state === "known" ? presetCtxSize(preset.value, model.upstreamId) : null;
        return {
          model,
          contextLength: inForce(set, model.nCtxTrain, state?.nCtx ?? null),
          status: state?.value ?? "unloaded",
          loaded: state?.value === "loaded" || state?.value === "sleeping",
        };
      });
    },
  };
}

/**
 * The preset's size, which the engine caps at the trained one and divides where the model's preset asks for parallel slots;
 * without it what the engine chose, or would.
 */
function inForce(set: number | null, trained: number | null, running: number | null): number | null {
  if (set === null) return running ?? trained;
  return Math.min(set, trained ?? set, running ?? set);
}
