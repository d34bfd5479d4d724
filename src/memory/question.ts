// What llama-fit-params is asked about a model: the settings with which the router would load it, as far as memory depends on them. Pure.
import { type CachedModel, filesOf } from "../plan/observed.ts";

export interface Question {
  /** Names files and settings: what is known under it stays true. */
  readonly key: string;
  /** Arguments of one run each; what they print is added up. */
  readonly runs: readonly (readonly string[])[];
  /** Absolute paths of files that are loaded whole besides. */
  readonly files: readonly string[];
  /** The engine may give it less than these settings where they do not fit, as it does for what is not set. */
  readonly isFitted: boolean;
}

/** Settings by their long names. Others change nothing that an estimate would show. */
const options = new Set(
  (
    "ctx-size parallel batch-size ubatch-size cache-type-k cache-type-v flash-attn n-gpu-layers split-mode tensor-split " +
    "main-gpu device override-tensor n-cpu-moe"
  ).split(" "),
);

/** Those without a value. */
const switches = "swa-full cpu-moe no-kv-offload no-repack no-host no-op-offload".split(" ");

/** Other spellings that the preset file may have. */
const synonyms: ReadonlyMap<string, string> = new Map([
  ["gpu-layers", "n-gpu-layers"],
  ["spec-draft-model", "model-draft"],
  ["gpu-layers-draft", "n-gpu-layers-draft"],
  ["spec-draft-ngl", "n-gpu-layers-draft"],
  ["spec-draft-type-k", "cache-type-k-draft"],
  ["spec-draft-type-v", "cache-type-v-draft"],
  ["spec-draft-n-ubatch", "ubatch-size-draft"],
]);

/** What a draft model takes over from its model, where it has none of its own. */
const followed = ["ctx-size", "batch-size", "ubatch-size", "flash-attn"];

/** llama-server's own, where nothing is set. */
const defaultSlots = 4;

/** Of a model in the cache. */
export type ModelFiles = Pick<CachedModel, "files" | "blobs" | "projector" | "bytes" | "modifiedAt">;

export function questionOf(model: ModelFiles, values: ReadonlyMap<string, string>): Question {
  const settings = new Map([...values].map(([key, value]) => [synonyms.get(key) ?? key, value]));
  const draft = settings.get("model-draft");
  const projector = isOff(settings.get("mmproj-auto")) ? null : (settings.get("mmproj") ?? model.projector);
  const runs = [
    argumentsFor(settings.get("model") ?? model.files[0] ?? "", settings),
    ...(draft === undefined ? [] : [argumentsFor(draft, draftSettings(settings))]),
  ];
  const files = [...(projector === null ? [] : [projector]), ...adapters(settings)];
  // `tags` has the identity of the files that the document names.
  const identity = [identityOf(model), settings.get("tags") ?? ""];
  return {
    key: JSON.stringify([identity, runs.map(withoutPath), files]),
    runs,
    files,
    isFitted: !isOff(settings.get("fit")),
  };
}

function argumentsFor(file: string, settings: ReadonlyMap<string, string>): string[] {
  const given = [...settings].filter(([key, value]) => options.has(key) && value !== "").toSorted(byKey);
  const on = switches.filter(
    (name) => isOn(settings.get(name)) || (name.startsWith("no-") && isOff(settings.get(name.slice(3)))),
  );
  const all = new Map([...given, ["parallel", String(cachesOf(settings))]]);
  return [
    "--model",
    file,
    ...[...all].flatMap(([key, value]) => [`--${key}`, value]),
    ...on.map((name) => `--${name}`),
  ];
}

/** KV caches: slots that share one take what a single slot takes, as they do where their number is left to the engine. */
function cachesOf(settings: ReadonlyMap<string, string>): number {
  const slots = Number(settings.get("parallel") ?? -1);
  const asked = settings.get("kv-unified");
  const isShared = isOn(asked) || (slots < 0 && !isOff(asked) && !isOn(settings.get("no-kv-unified")));
  return isShared ? 1 : slots < 0 ? defaultSlots : slots;
}

/** One cache serves all slots. */
function draftSettings(settings: ReadonlyMap<string, string>): Map<string, string> {
  const all = [...settings];
  const own = all.flatMap(([key, value]) => (key.endsWith("-draft") ? [[key.slice(0, -6), value] as const] : []));
  return new Map([...all.filter(([key]) => followed.includes(key)), ["parallel", "1"], ...own]);
}

/** Paths of `--lora A,B` and `--lora-scaled A:1,B:0.5`. */
function adapters(settings: ReadonlyMap<string, string>): string[] {
  const scaled = settings.get("lora-scaled")?.split(",") ?? [];
  const plain = settings.get("lora")?.split(",") ?? [];
  return [...plain, ...scaled.map((each) => each.replace(/:[^:]*$/, ""))].filter((path) => path !== "");
}

/** The content of the model's files, whatever its folder is called; of plain files their time. */
function identityOf(model: ModelFiles): readonly (string | number)[] {
  const names = model.blobs.filter((name) => name !== null);
  return names.length === model.files.length ? names : [...filesOf(model), model.bytes, model.modifiedAt];
}

/** The files that it is about: of a model in shards the first. */
export function pathsIn({ runs, files }: Question): string[] {
  return [...runs.flatMap(([, path]) => path ?? []), ...files];
}

/** Those after `--model FILE`. */
function withoutPath(args: readonly string[]): readonly string[] {
  return args.slice(2);
}

function byKey([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return a < b ? -1 : 1;
}

function isOn(value: string | undefined): boolean {
  return value !== undefined && ["on", "enabled", "true", "1"].includes(value.toLowerCase());
}

function isOff(value: string | undefined): boolean {
  return value !== undefined && ["off", "disabled", "false", "0"].includes(value.toLowerCase());
}
