// How loads end is remembered, and which settings take the place of those that fail. Wired to the newest pass.

import type { LoadInputs } from "../plan/load-record.ts";
import type { CachedModel } from "../plan/observed.ts";
import { parsePreset } from "../plan/preset-file.ts";
import { filesIdentity, settingsIn } from "../plan/rollback.ts";
import type { SchedulerOptions } from "../scheduler/scheduler.ts";
import type { Base } from "./events.ts";
import type { Machine } from "./machine.ts";
import type { State } from "./state.ts";

type Listeners = Pick<SchedulerOptions, "hasFallback" | "onFallBack" | "onLoadVerified">;

/** `modelOf`: by the router's id. */
export function followLoads(
  { events, warn, store, router, engine, loads }: Base & State & Machine,
  modelOf: (id: string) => CachedModel | undefined,
): Listeners {
  /** What a load is made of now: a change of them ends its process. */
  function inputsOf(id: string): LoadInputs | null {
    const model = modelOf(id);
    const { loadedPreset } = router.snapshot();
    if (!model || loadedPreset === null) return null;
    const settings = settingsIn(parsePreset(loadedPreset), id);
    return { settings, files: filesIdentity(model), engine: engine.state().build };
  }

  // Before the loop plans again.
  events.on("retried", () => loads.forgive(() => true));
  events.on("passed", ({ observed: { cache, preset }, plan }) => {
    if (cache.state === "unknown" || preset.state === "unknown") return;
    // By the pass's own models: by those of the one before, each start forgave all.
    const kept = new Set(
      cache.value.models.filter(({ id }) => plan.rolledBack.has(id)).map((model) => model.upstreamId),
    );
    // The document asks for other settings by now, or its model's files or the engine are others.
    loads.forgive((id) => !kept.has(id));
  });
  return {
    hasFallback: (id) => {
      const inputs = inputsOf(id);
      return inputs !== null && !store.current().document.suspend && loads.hasFallback(id, inputs);
    },
    onFallBack: (id, why) => {
      const inputs = inputsOf(id);
      if (inputs) loads.failed(id, inputs, why);
      warn("settings failed to load and are rolled back", { model: modelOf(id)?.id ?? id, why });
      events.emit("loadFailed", id);
    },
    onLoadVerified: (id) => {
      const inputs = inputsOf(id);
      if (inputs) loads.verified(id, inputs);
      events.emit("loadVerified", id);
    },
  };
}
