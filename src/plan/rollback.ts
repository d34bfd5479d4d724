// Settings with which models have worked, and when they take the place of others that do not. Pure.
import {
  differences,
  isSameLoad,
  type LoadInputs,
  type LoadRecord,
  type LoadRecords,
  type Settings,
} from "./load-record.ts";
import { type CachedModel, filesOf } from "./observed.ts";
import { markedIn, ownValues, type PresetFile } from "./preset-file.ts";
import type { WantedSection } from "./render-preset.ts";
import { sourceValues } from "./wanted-preset.ts";

/** Where a model's files are is no setting. */
const sourceKeys: ReadonlySet<string> = new Set(["hf-repo", "model"]);
/** The identity of files that settings name: {@link FileValues}. */
const identityKey = "tags";

/** What the gateway has set for a model, the size of `[*]` included. */
export function settingsIn(preset: PresetFile, upstreamId: string): Settings {
  const common = markedIn(preset, "*").get("ctx-size");
  const isCommon = common !== undefined && !ownValues(preset, upstreamId).has("ctx-size");
  const own = [...markedIn(preset, upstreamId)].filter(([key]) => !sourceKeys.has(key));
  return new Map([...own, ...(isCommon ? [["ctx-size", common] as const] : [])]);
}

export function filesIdentity(model: CachedModel): string {
  const names = model.blobs.filter((name) => name !== null);
  if (names.length === model.files.length) return [...names, model.projector ?? ""].join(" ");
  return [...filesOf(model), model.bytes, model.modifiedAt].join(" ");
}

/** Whether settings that fail can give way to those of the record: nothing but they has changed. */
export function hasFallback({ verified }: LoadRecord, inputs: LoadInputs): boolean {
  const isSameMachine = verified.files === inputs.files && verified.engine === inputs.engine;
  // Files that the settings name are as they are now, whatever they were.
  return isSameMachine && differences(inputs.settings, verified.settings).some((key) => key !== identityKey);
}

/** Models whose settings in this file, the one that the document asks for, are known to fail. */
export function failingSettings(
  asked: PresetFile,
  models: readonly CachedModel[],
  records: LoadRecords,
  build: string,
): ReadonlyMap<CachedModel, LoadRecord> {
  return new Map(
    models.flatMap((model) => {
      const record = records.get(model.upstreamId);
      if (!record?.failed) return [];
      // At the start it has not been looked for yet.
      const engine = build === "" ? record.failed.engine : build;
      const inputs = { settings: settingsIn(asked, model.upstreamId), files: filesIdentity(model), engine };
      return isSameLoad(record.failed, inputs) && hasFallback(record, inputs) ? [[model, record] as const] : [];
    }),
  );
}

/** The sections with the settings that worked. */
export function withFallbacks(
  wanted: readonly WantedSection[],
  fallbacks: ReadonlyMap<CachedModel, LoadRecord>,
): WantedSection[] {
  const names = new Set([...fallbacks.keys()].map(({ upstreamId }) => upstreamId));
  const hasCommonSize = wanted.find(({ name }) => name === "*")?.values.has("ctx-size") === true;
  const sections = [...fallbacks].map(([model, { verified }]): WantedSection => {
    // 0: the engine decides, as it did without any.
    const size = hasCommonSize && !verified.settings.has("ctx-size") ? [["ctx-size", "0"] as const] : [];
    return { name: model.upstreamId, values: new Map([...size, ...verified.settings, ...sourceValues(model)]) };
  });
  return [...wanted.filter(({ name }) => !names.has(name)), ...sections];
}

/** For people: what is in force, and what failed. */
export function rollbackText({ verified, failed }: LoadRecord): string {
  if (!failed) return "";
  const keys = differences(verified.settings, failed.settings).filter((key) => key !== identityKey);
  const inWords = (settings: Settings): string =>
    keys.map((key) => (settings.has(key) ? `${key} ${settings.get(key)}` : `no ${key}`)).join(", ");
  return `with ${inWords(failed.settings)} it could not be loaded (${failed.why}); it runs with ${inWords(verified.settings)} as before`;
}
