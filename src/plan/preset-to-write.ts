// The preset file that is to be in force: as the document asks for it, but for models that are known to fail so. Pure.
import type { Desired } from "../desired/document/document.ts";
import { findCached } from "./find-model.ts";
import { type CachedModel, type CacheSnapshot, isOfRepo, type Observed } from "./observed.ts";
import { effectiveValues, type PresetFile, parsePreset } from "./preset-file.ts";
import { renderPreset, type WantedSection } from "./render-preset.ts";
import { failingSettings, rollbackText, withFallbacks } from "./rollback.ts";
import { note, wantedSections } from "./wanted-preset.ts";

/** What is found on the way, as a plan has it. */
export interface PresetNotes {
  readonly findings: Map<string, string>;
  readonly rolledBack: Set<string>;
  readonly autos: Map<string, ReadonlyMap<string, string>>;
}

interface Seen extends Pick<Observed, "router" | "loads" | "documentFiles"> {
  readonly cache: CacheSnapshot;
  readonly preset: PresetFile;
  /** The workers to use, in RPC mode. */
  readonly endpoints: readonly string[];
}

export function presetToWrite(
  desired: Desired,
  models: readonly CachedModel[],
  { router, loads, documentFiles, cache, preset, endpoints }: Seen,
  { findings, rolledBack, autos }: PresetNotes,
): { readonly text: string; readonly wanted: readonly WantedSection[] } {
  const render = (wanted: readonly WantedSection[]): string =>
    renderPreset(preset, wanted, router.knownOptions, (name) => isOfRepo(name, cache.unreadable));
  const asked = wantedSections(desired, models, endpoints, router, findings, documentFiles, loads.contexts);
  const text = render(asked);
  const chosen = desired.models.filter(({ ctxSize }) => ctxSize === "auto");
  const hasFailures = [...loads.records.values()].some(({ failed }) => failed !== null);
  if (chosen.length === 0 && !hasFailures) return { text, wanted: asked };
  const file = parsePreset(text);
  for (const { id } of chosen) {
    const { complete, upstreamId } = findCached(models, id) ?? { complete: false, upstreamId: "" };
    if (!complete) continue;
    autos.set(upstreamId, new Map([...effectiveValues(file, upstreamId)].filter(([key]) => key !== "ctx-size")));
  }
  const failing = failingSettings(file, models, loads.records, router.build);
  if (failing.size === 0) return { text, wanted: asked };
  for (const [model, record] of failing) {
    note(findings, model.id, rollbackText(record));
    rolledBack.add(model.id);
  }
  const wanted = withFallbacks(asked, failing);
  return { text: render(wanted), wanted };
}
