// The models of Ollama's store as models of a document. Several names of one file become one model: names without settings are its
// aliases, the others its variants.
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { keepAliveMs } from "../core/keep-alive.ts";
import type { DesiredModel, Variant } from "../desired/document/document.ts";
import type { Imported, ImportedModel, Remark, SideFile } from "./imported.ts";
import { idOf, isName, isQuant, splitQuant, unused } from "./naming.ts";
import { type OllamaSettings, settingsOf } from "./ollama-settings.ts";

/** Where a manifest lies: `registry.ollama.ai/library/llama3.2/3b`. */
export interface OllamaPlace {
  readonly host: string;
  readonly namespace: string;
  readonly model: string;
  readonly tag: string;
}

/** One name in the store, with what its files hold. Paths are absolute. */
export interface StoredModel {
  readonly place: OllamaPlace;
  readonly config: JsonObject;
  readonly params: JsonObject;
  readonly weights: string;
  readonly projector: string | null;
  readonly adapters: readonly string[];
  /** As in {@link Manifest}. */
  readonly others: readonly string[];
  /** Whether the model's file has a chat template. */
  readonly hasTemplate: boolean;
}

/** Settings of Ollama's server, which are no part of its store; as its environment has them. */
export interface OllamaServer {
  readonly keepAlive: string | undefined;
  readonly contextLength: string | undefined;
}

const program = "Ollama";

/** As Ollama lists it. */
export function ollamaName({ host, namespace, model, tag }: OllamaPlace): string {
  if (host !== "registry.ollama.ai") return `${host}/${namespace}/${model}:${tag}`;
  return namespace === "library" ? `${model}:${tag}` : `${namespace}/${model}:${tag}`;
}

export function ollamaModels(stored: readonly StoredModel[], server: OllamaServer): Imported {
  const remarks: Remark[] = [];
  const taken = new Set<string>();
  const byFiles = new Map<string, StoredModel[]>();
  for (const each of stored.toSorted(byPlainness)) {
    const key = [each.weights, each.projector, ...each.adapters].join("\n");
    byFiles.set(key, [...(byFiles.get(key) ?? []), each]);
  }
  const shared = serverSettings(server, remarks);
  const models = [...byFiles.values()].map((names) => modelOf(names, shared, taken, remarks));
  if (stored.some(({ params }) => settingsOf(params).hasTemplateStops))
    remarks.push({
      about: program,
      message: "has stop sequences that are the template's own tokens: left out, the engine stops there by itself",
    });
  return { models, remarks };
}

type Shared = Pick<DesiredModel, "keepAlive" | "ctxSize">;

function serverSettings({ keepAlive, contextLength }: OllamaServer, remarks: Remark[]): Shared {
  const isDuration = keepAlive !== undefined && keepAliveMs(keepAlive) !== null;
  if (!isDuration)
    remarks.push({
      about: program,
      message:
        "keeps its keep-alive (OLLAMA_KEEP_ALIVE, else 5m) in its server's environment, not in the store: set `keepAlive` of a model, or run this with the variable set; without it models stay loaded until their slot is needed",
    });
  const tokens = Number(contextLength);
  return {
    ...(isDuration ? { keepAlive } : {}),
    ...(Number.isSafeInteger(tokens) && tokens > 0 ? { ctxSize: tokens } : {}),
  };
}

/** `names`: all of one file, the plainest first. */
function modelOf(names: readonly StoredModel[], shared: Shared, taken: Set<string>, remarks: Remark[]): ImportedModel {
  const [first] = names as readonly [StoredModel, ...StoredModel[]];
  const { tag, model: plain } = first.place;
  // An id that ends in :latest would be taken for one without a tag.
  const id = unused(idFor(first), taken, tag === "latest" ? plain : tag);
  taken.add(id.toLowerCase());
  const all = names.map((stored) => ({ name: ollamaName(stored.place), settings: settingsOf(stored.params) }));
  const sizes = all.flatMap(({ settings }) => settings.ctxSize ?? []);
  const ctxSize = sizes.length > 0 ? Math.max(...sizes) : shared.ctxSize;
  const preset = Object.assign(
    {},
    ...all.map(({ settings }) => settings.preset).toReversed(),
  ) as OllamaSettings["preset"];
  for (const [index, stored] of names.entries()) noteLosses(stored, all[index], remarks);
  if (new Set(sizes).size > 1)
    remarks.push({
      about: all.map(({ name }) => name).join(", "),
      message: `have different num_ctx and share one process here: it has ${ctxSize} tokens`,
    });
  const usable = all.filter(({ name }) => isName(name));
  const aliases = usable.filter(({ settings }) => isPlain(settings)).map(({ name }) => shortOf(name));
  const variants = usable
    .filter(({ settings }) => !isPlain(settings))
    .map(({ name, settings }): Variant => ({ name: shortOf(name), set: settings.set }));
  const model: DesiredModel = {
    id,
    source: first.weights,
    ...(ctxSize === undefined ? {} : { ctxSize }),
    ...(shared.keepAlive === undefined ? {} : { keepAlive: shared.keepAlive }),
    ...(aliases.length > 0 ? { aliases } : {}),
    ...(variants.length > 0 ? { variants } : {}),
    ...(Object.keys(preset).length > 0 ? { preset } : {}),
  };
  return { name: ollamaName(first.place), model, beside: sideFiles(first, id) };
}

const losses: Readonly<Record<string, string>> = {
  system: "has a system prompt, which a document cannot have: let clients send it",
  messages: "has messages of its own, which a document cannot have: let clients send them",
  draft: "has a draft model, which is not taken over",
};

function noteLosses(
  { others, hasTemplate, place }: StoredModel,
  named: { readonly settings: OllamaSettings } | undefined,
  remarks: Remark[],
): void {
  const about = ollamaName(place);
  for (const kind of others)
    remarks.push({ about, message: losses[kind] ?? `has a layer of kind ${kind}, which is not taken over` });
  const unknown = named?.settings.unknown ?? [];
  if (unknown.length > 0)
    remarks.push({ about, message: `has parameters without a counterpart: ${unknown.join(", ")}` });
  if (!hasTemplate)
    remarks.push({
      about,
      message:
        "has no chat template in its file, and Ollama's is in another language: set `chatTemplate` to chat with it",
    });
}

function isPlain({ set }: OllamaSettings): boolean {
  return Object.keys(set).length === 0;
}

/** `llama3.2:latest` is `llama3.2` too, here as there. */
function shortOf(name: string): string {
  return name.replace(/:latest$/, "");
}

function idFor({ place, config }: StoredModel): string {
  const { host, namespace, model, tag } = place;
  const declared = isJsonObject(config) && typeof config["file_type"] === "string" ? config["file_type"] : "";
  const own = isQuant(tag) ? { name: "", quant: tag.toUpperCase() } : splitQuant(tag);
  const quant = isQuant(declared) ? declared.toUpperCase() : own.quant;
  if (/^(?:hf\.co|huggingface\.co)$/.test(host)) return idOf(namespace, model, isQuant(tag) ? tag : (quant ?? tag));
  const name = [...(namespace === "library" ? [] : [namespace]), model, ...(own.name === "latest" ? [] : [own.name])];
  return idOf("ollama", name.filter((part) => part !== "").join("-"), quant ?? tag);
}

function sideFiles({ projector, adapters }: StoredModel, id: string): SideFile[] {
  const stem = id.replaceAll(/[/:]/g, "-");
  return [
    ...(projector === null ? [] : [{ field: "mmproj" as const, path: projector, name: `${stem}-mmproj.gguf` }]),
    ...adapters.map((path, index) => ({ field: "lora" as const, path, name: `${stem}-lora-${index + 1}.gguf` })),
  ];
}

/** Without a tag first, then the shortest. */
function byPlainness(a: StoredModel, b: StoredModel): number {
  const [left, right] = [shortOf(ollamaName(a.place)), shortOf(ollamaName(b.place))];
  return left.length - right.length || (left < right ? -1 : 1);
}
