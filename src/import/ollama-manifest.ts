// A manifest of Ollama's model store: the names of its files, or why there is no model to import.
import { isJsonObject, type JsonObject, parseJson } from "../core/json.ts";

export interface Manifest {
  /** Digests, as hexadecimal sha256. */
  readonly config: string;
  readonly weights: string;
  readonly projector: string | null;
  readonly adapters: readonly string[];
  readonly params: string | null;
  /** Kinds of layers without a counterpart in a document: `system`, `messages`, `draft`. */
  readonly others: readonly string[];
}

const kindPrefix = "application/vnd.ollama.image.";

/** Layers that need no counterpart: the model's file has a template, and a license changes no answer. */
const unneeded = new Set(["template", "license", "prompt", "params", "model", "projector", "adapter"]);

/** Why there is none, in words that follow the model's name. */
export function parseManifest(text: string): Manifest | string {
  const value = parseJson(text);
  const config = isJsonObject(value) ? digestOf(value["config"]) : null;
  const listed = isJsonObject(value) && Array.isArray(value["layers"]) ? (value["layers"] as readonly unknown[]) : [];
  const layers = listed.map((layer) => ({ kind: kindOf(layer), digest: digestOf(layer) }));
  if (config === null || layers.some(({ digest }) => digest === null)) return "has a damaged manifest";
  const all = (kind: string): string[] => layers.flatMap((layer) => (layer.kind === kind ? (layer.digest ?? []) : []));
  const [weights, ...more] = all("model");
  if (layers.some(({ kind }) => kind === "tensor")) return "is not a GGUF file but single tensors";
  if (weights === undefined) return "has no file here: it runs in Ollama's cloud";
  if (more.length > 0) return "has several model files in one manifest";
  return {
    config,
    weights,
    projector: all("projector")[0] ?? null,
    adapters: all("adapter"),
    params: all("params")[0] ?? null,
    others: [...new Set(layers.map(({ kind }) => kind))].filter((kind) => !unneeded.has(kind)),
  };
}

function kindOf(layer: unknown): string {
  const type = isJsonObject(layer) ? layer["mediaType"] : undefined;
  return typeof type === "string" && type.startsWith(kindPrefix) ? type.slice(kindPrefix.length) : "unknown";
}

function digestOf(layer: unknown): string | null {
  const digest = isJsonObject(layer) ? layer["digest"] : undefined;
  return typeof digest === "string" ? (/^sha256[:-]([0-9a-f]{64})$/.exec(digest)?.[1] ?? null) : null;
}

/** Why a model of this config cannot be imported, in words that follow its name; null where it can. */
export function configProblem(config: JsonObject): string | null {
  const { remote_host: host, model_format: format } = config;
  if (typeof host === "string" && host !== "") return "has no file here: it runs in Ollama's cloud";
  return typeof format === "string" && format !== "" && format !== "gguf" ? `is not a GGUF file but ${format}` : null;
}
