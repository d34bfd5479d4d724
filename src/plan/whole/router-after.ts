// The router after a start or a reload: what it has read, and what it lists. Pure.
import { registeredId } from "../../core/ids.ts";
import { type CachedModel, loadedModels, type Observed, type RouterModel, type RouterSnapshot } from "../observed.ts";
import { hasSource, type PresetFile, presetCtxSize } from "../preset-file.ts";

/** `ended`: models whose instance a reload ends; null: it was started, and has none. */
export function routerAfter({ router, preset, cache }: Observed, ended: readonly string[] | null): RouterSnapshot {
  if (preset.state === "unknown" || cache.state === "unknown") return router;
  const before = router.models.state === "known" ? router.models.value : [];
  const loaded = ended === null ? [] : loadedModels(before).filter((id) => !ended.includes(id));
  const listed = listedModels(preset.value, cache.value.models);
  return {
    ...router,
    phase: "ready",
    loadedPreset: preset.value.text,
    loadedCache: cache.value.signature,
    freshlyStarted: ended === null,
    silentSince: null,
    models: {
      state: "known",
      value: listed.map((model) =>
        loaded.includes(model.id) ? (before.find(({ id }) => id === model.id) ?? model) : model,
      ),
    },
  };
}

/** After these models were unloaded. */
export function routerWithout(router: RouterSnapshot, ids: readonly string[]): RouterSnapshot {
  if (router.models.state === "unknown") return router;
  const value = router.models.value.map((model) =>
    ids.includes(model.id) ? { ...model, value: "unloaded", nCtx: null } : model,
  );
  return { ...router, models: { state: "known", value } };
}

/** What it finds in the cache by itself, and every section that names its source. */
function listedModels(preset: PresetFile, models: readonly CachedModel[]): RouterModel[] {
  const sections = preset.sections
    .flatMap(({ name }) => (name === null || name === "*" || !hasSource(preset, name) ? [] : name))
    .map(registeredId);
  const ids = [...new Set([...models.flatMap(({ routerId }) => routerId ?? []), ...sections])].sort();
  return ids.map((id) => {
    const size = presetCtxSize(preset, id);
    const args = size === null ? [] : ["--ctx-size", String(size)];
    return { id, value: "unloaded", failed: false, args, nCtx: null };
  });
}
