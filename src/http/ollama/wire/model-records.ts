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
  /** What it can do, in Ollama's words; absent where its file could not be read. */
  readonly capabilities?: readonly string[];
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
  readonly capabilities?: readonly string[];
}

export interface PsEntry extends Omit<TagEntry, "modified_at" | "capabilities"> {
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

export function detailsOf(model: ModelFacts): ModelDetails {
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

/** By llama.cpp's number of the way in which the weights are stored; a dash for those that are gone. */
const fileTypes = (
  "F32 F16 Q4_0 Q4_1 - - - Q8_0 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ2_XXS IQ2_XS " +
  "Q2_K_S IQ3_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ3_M IQ2_S IQ2_M IQ4_XS IQ1_M BF16"
).split(" ");

/** The quantisation: the tag where that is one, else what the file says. */
export function quantizationOf(tag: string, fileType: number | null): string {
  if (/^(?:I?Q\d|TQ\d|BF16|F16|F32|MXFP4|NVFP4)/i.test(tag)) return tag;
  const named = fileTypes[fileType ?? -1] ?? "-";
  return named === "-" ? tag : named;
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
    ...(model.capabilities && { capabilities: model.capabilities }),
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
