// Builds the elements of Ollama's GET /api/tags and /api/ps from plain facts about a model. Pure.

export interface ModelFacts {
  readonly id: string;
  /** Bytes of all its files. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly modifiedAt: number;
  /** SHA-256 in hex. */
  readonly digest: string;
  /** The architecture that the file names: `llama`, `gemma3`. */
  readonly family?: string;
  /** `7.6B` */
  readonly parameterSize?: string;
  /** `Q4_K_M` */
  readonly quantization?: string;
  /** The context size in force. */
  readonly contextLength?: number;
  readonly loaded: boolean;
  /** When it is unloaded, in milliseconds since the epoch; null or absent: never. */
  readonly expiresAt?: number | null;
  /** Bytes of it in the memory of a graphics card, where that is known. */
  readonly sizeVram?: number;
}

export interface ModelDetails {
  readonly parent_model: string;
  readonly format: "gguf";
  readonly family: string;
  readonly families: readonly string[] | null;
  readonly parameter_size: string;
  readonly quantization_level: string;
  readonly context_length?: number;
}

export interface TagEntry {
  readonly name: string;
  readonly model: string;
  /** RFC 3339. */
  readonly modified_at: string;
  readonly size: number;
  readonly digest: string;
  readonly details: ModelDetails;
}

export interface PsEntry extends Omit<TagEntry, "modified_at"> {
  /** RFC 3339. */
  readonly expires_at: string;
  readonly size_vram: number;
  readonly context_length?: number;
}

/** Clients take anything beyond a century for "for ever". The year 9999 overflows in those that turn it to local time. */
const never = "2318-01-01T00:00:00Z";

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

function contextOf(model: ModelFacts): { readonly context_length?: number } {
  return model.contextLength === undefined ? {} : { context_length: model.contextLength };
}

function detailsOf(model: ModelFacts): ModelDetails {
  return {
    parent_model: "",
    format: "gguf",
    family: model.family ?? "",
    families: model.family === undefined ? null : [model.family],
    parameter_size: model.parameterSize ?? "",
    quantization_level: model.quantization ?? "",
    ...contextOf(model),
  };
}

/** One element of `models` in the answer of /api/tags. */
export function tagEntry(model: ModelFacts): TagEntry {
  return {
    name: model.id,
    model: model.id,
    modified_at: timeOf(model.modifiedAt),
    size: model.size,
    digest: model.digest,
    details: detailsOf(model),
  };
}

/** One element of `models` in the answer of /api/ps. */
export function psEntry(model: ModelFacts): PsEntry {
  const { expiresAt } = model;
  return {
    name: model.id,
    model: model.id,
    size: model.size,
    digest: model.digest,
    details: detailsOf(model),
    expires_at: expiresAt === undefined || expiresAt === null ? never : timeOf(expiresAt),
    size_vram: model.sizeVram ?? 0,
    ...contextOf(model),
  };
}

/** The answer of /api/tags. */
export function tagsBody(models: readonly ModelFacts[]): { readonly models: readonly TagEntry[] } {
  return { models: models.map(tagEntry) };
}

/** The answer of /api/ps, which lists what is loaded. */
export function psBody(models: readonly ModelFacts[]): { readonly models: readonly PsEntry[] } {
  return { models: models.filter((model) => model.loaded).map(psEntry) };
}
