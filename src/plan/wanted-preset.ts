// Which sections router.preset.ini should have, and whether the router took them. Pure.

import { runnableContext } from "../core/context-size.ts";
import { isForEmbeddings, poolings } from "../core/gguf-facts.ts";
import type { Desired, DesiredModel } from "../desired/document/document.ts";
import { findCached } from "./find-model.ts";
import type { LoadFacts } from "./load-record.ts";
import { type FileValues, fileValues, noFiles } from "./model-files.ts";
import { type CachedModel, type DocumentFile, optionOf, type RouterModel, type RouterSnapshot } from "./observed.ts";
import { canonicalKey, ownValues, type PresetFile, presetCtxSize } from "./preset-file.ts";
import type { WantedSection } from "./render-preset.ts";

/** Seconds until the router kills a model that does not end by itself; its own default of 10 blocks a reload as long. */
const stopTimeoutSeconds = 3;

/** Tokens: the engine's own physical batch, and the one that texts to embed get. More takes memory by its square. */
const defaultBatch = 512;
const embeddingBatch = 2048;

/** For a router that was started without, where there is something to fit by now. */
const fitAgain = ["fit", "on"] as const;

/** `[*]`, and a section for each model that has an override, that embeds or that the router would not list by itself. */
export function wantedSections(
  desired: Desired,
  models: readonly CachedModel[],
  /** The workers to use, in RPC mode. */
  endpoints: readonly string[],
  {
    knownOptions,
    isUnfitted = false,
  }: Pick<RouterSnapshot, "knownOptions"> & Partial<Pick<RouterSnapshot, "isUnfitted">>,
  findings: Map<string, string>,
  files: ReadonlyMap<string, DocumentFile> = new Map(),
  contexts: LoadFacts["contexts"] = new Map(),
): WantedSection[] {
  const isKnown = (key: string): boolean => knownOptions?.has(key) ?? true;
  const byId = new Map<string, DesiredModel>();
  for (const model of desired.models) {
    const id = findCached(models, model.id)?.id;
    if (id === undefined) continue;
    const other = byId.get(id);
    if (other && settingsOf(other) !== settingsOf(model)) {
      const names = `the document names it as ${other.id} and as ${model.id}`;
      note(findings, id, `${names}, with other settings; the last counts`);
    }
    byId.set(id, model);
  }
  const sections = models
    .filter((model) => model.complete)
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .flatMap((model) => {
      const own = byId.get(model.id);
      let named = own ? fileValues(own, desired, models, files) : noFiles;
      for (const problem of named.problems) note(findings, model.id, problem);
      const ctxSize = own?.ctxSize === "auto" ? chosenSize(model, contexts, findings) : own?.ctxSize;
      // Not in `[*]`: models with a context of their own would end for it.
      if (isUnfitted && desired.context.default === undefined && ctxSize === undefined)
        named = { ...named, defaults: new Map([...named.defaults, fitAgain]) };
      return modelSection(model, own && { ...own, ctxSize }, named, isKnown, findings);
    });
  const values = globalValues(desired, endpoints, isKnown, findings);
  const defaults = new Map(isUnfitted && values.has("rpc") ? [fitAgain] : []);
  return [{ name: "*", values: new Map([...values, ...defaults]), defaults: new Set(defaults.keys()) }, ...sections];
}

/**
 * Whether a router without devices may have its models fit nothing: in main memory they fit a context that is not set, and read the
 * vocabulary once more to find out that there is none.
 */
export function canDoUnfitted({ context, rpc }: Desired, preset: PresetFile): boolean {
  const all = ownValues(preset, "*");
  const isSet = context.default !== undefined && all.has("ctx-size");
  return isSet && rpc.workers.length === 0 && !all.has("rpc") && !all.has("fit");
}

export function note(findings: Map<string, string>, subject: string, text: string): void {
  const earlier = findings.get(subject);
  findings.set(subject, earlier === undefined ? text : `${earlier}; ${text}`);
}

function settingsOf({ ctxSize, preset, chatTemplate, lora, mmproj, draft }: DesiredModel): string {
  const options = Object.entries(preset ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([ctxSize, options, chatTemplate, lora, mmproj, draft]);
}

function globalValues(
  { context, rpc }: Desired,
  endpoints: readonly string[],
  isKnown: (key: string) => boolean,
  findings: Map<string, string>,
): Map<string, string> {
  const values = new Map<string, string>();
  if (context.default !== undefined) values.set("ctx-size", String(runnableContext(context.default, null)));
  // Otherwise each load asks the hub, and the router pulls newer commits by itself.
  values.set("offline", "true");
  values.set("stop-timeout", String(stopTimeoutSeconds));
  if (rpc.mode === "single" || rpc.workers.length === 0) return values;
  if (!isKnown("rpc")) note(findings, "rpc", "the engine was built without RPC: the workers are left out");
  // None where no worker can be used: the model then runs on this machine alone.
  else if (endpoints.length > 0) values.set("rpc", endpoints.join(","));
  return values;
}

/** Undefined while none is chosen. */
function chosenSize(
  { id, upstreamId }: CachedModel,
  contexts: LoadFacts["contexts"],
  findings: Map<string, string>,
): number | undefined {
  const chosen = contexts.get(upstreamId);
  if (chosen?.tokens === null) note(findings, id, `ctxSize: auto is left out: ${chosen.why}`);
  return chosen?.tokens ?? undefined;
}

function modelSection(
  model: CachedModel,
  own: (Omit<DesiredModel, "ctxSize"> & { readonly ctxSize: number | undefined }) | undefined,
  named: FileValues,
  isKnown: (key: string) => boolean,
  findings: Map<string, string>,
): WantedSection[] {
  const { ctxSize, preset = {} } = own ?? {};
  const size = ctxSize === undefined ? {} : { "ctx-size": runnableContext(ctxSize, model.nCtxTrain) };
  const asked = [...Object.entries({ ...size, ...preset }), ...named.values];
  for (const [key] of asked)
    if (!isKnown(key)) note(findings, model.id, `the engine has no option ${key}; it is left out`);
  const overrides = new Map(asked.flatMap(([key, value]) => (isKnown(key) ? [[key, String(value)]] : [])));
  const usual = new Map([...named.defaults, ...embeddingValues(model, overrides)]);
  // The router ends a process when its arguments change, not when a file does.
  if (named.identity !== "") usual.set("tags", `files-${named.identity}`);
  const defaults = new Map([...usual].filter(([key]) => isKnown(key) && !overrides.has(key)));
  if (model.routerId !== null && overrides.size + defaults.size === 0) return [];
  const problem = sectionProblem(model);
  if (problem !== null) {
    // For a model that the document does not name it is no finding.
    if (own) note(findings, model.id, problem);
    return [];
  }
  // The document's projector before the one beside the model.
  const source = [...sourceValues(model)].filter(([key]) => !overrides.has(key));
  const values = new Map([...defaults, ...overrides, ...source]);
  return [{ name: model.upstreamId, values, defaults: new Set(defaults.keys()) }];
}

/** Options without which a model refuses embeddings or ranking; keys of the file's owner win. */
function embeddingValues(model: CachedModel, overrides: ReadonlyMap<string, string>): Map<string, string> {
  const values = new Map<string, string>();
  const isForThat = isForEmbeddings(model.architecture, model.pooling);
  if (!isForThat && overrides.size === 0) return values;
  const own = new Map([...overrides].map(([key, value]) => [canonicalKey(key), value]));
  // Without it the engine answers such requests 501. Ranking has a switch of its own, which includes the other.
  if (isForThat) values.set(model.pooling === poolings.rank ? "reranking" : "embeddings", "true");
  const isOn = isForThat || ["on", "enabled", "true", "1"].includes(own.get("embeddings") ?? "");
  // Without a pooling it refuses to embed, and a chat with such a model kills its process.
  if (isOn && (model.pooling ?? poolings.none) === poolings.none) values.set("pooling", "mean");
  // A text has to fit into one batch, else the answer is a 500; only of those that take the last token it need not.
  const batch = Math.min(embeddingBatch, model.nCtxTrain ?? 0);
  if (isForThat && model.pooling !== poolings.last && batch > defaultBatch) values.set("ubatch-size", String(batch));
  for (const key of own.keys()) values.delete(key);
  return values;
}

/** Why the preset file can have no section for a model; without one the router does not know it, unless it lists it by itself. */
export function sectionProblem(model: CachedModel): string | null {
  const unfit =
    [...sourceValues(model).values()].find((value) => /[#;\r\n]|^\s|\s$/.test(value)) ??
    (/[[\]#;\r\n]|^\s|\s$/.test(model.upstreamId) ? model.upstreamId : undefined);
  return unfit === undefined ? null : `the preset file cannot hold the name ${JSON.stringify(unfit)}`;
}

/** A section without a source makes a phantom model that hangs once its files are gone. */
export function sourceValues(model: CachedModel): Map<string, string> {
  if (model.routerId !== null) return new Map([["hf-repo", model.upstreamId]]);
  const values = new Map([["model", model.files[0] ?? ""]]);
  if (model.projector !== null) values.set("mmproj", model.projector);
  return values;
}

/** Whether the router's own list shows every one of these ids with the context size that the preset gives it. */
export function reloadTookEffect(listed: readonly RouterModel[], preset: PresetFile, ids: readonly string[]): boolean {
  const byId = new Map(listed.map((model) => [model.id.toLowerCase(), model]));
  return ids.every((name) => {
    const model = byId.get(name.toLowerCase());
    return model !== undefined && registeredCtxSize(model) === presetCtxSize(preset, name);
  });
}

/** The `--ctx-size` with which the router would start, or has started, a model. */
export function registeredCtxSize(model: RouterModel): number | null {
  const value = Number(optionOf(model, "--ctx-size", "-c"));
  return Number.isInteger(value) && value > 0 ? value : null;
}
