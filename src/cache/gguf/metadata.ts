// What readers ask of a GGUF file: the few facts that each scan of the cache needs, whether the file is whole, and everything
// small in its head. Null if the file is no readable GGUF: absent, not a regular file, truncated, damaged, big endian.
// Nothing here throws.
import { stat } from "node:fs/promises";
import type { GgufDetails } from "../../core/gguf-facts.ts";
import { type GgufHead, type IsEnough, readHead } from "./head.ts";

export type { GgufDetails } from "../../core/gguf-facts.ts";

export interface GgufMetadata {
  readonly architecture: string;
  readonly name?: string;
  /** `general.size_label`, as its maker wrote it: `270M`, `8x7B`. */
  readonly sizeLabel?: string;
  /** `general.file_type`, llama.cpp's number of the quantization. */
  readonly fileType?: number;
  /** Trained context in tokens. */
  readonly contextLength?: number;
  /** llama.cpp's number of the way in which it makes one vector of a text's; 0 is none. */
  readonly pooling?: number;
}

/** Reads no further than the facts are. */
export async function readGgufMetadata(path: string): Promise<GgufMetadata | null> {
  const head = await readHead(path, hasFacts);
  const facts = head && factsOf(head);
  return facts && (head.end !== "cut" || isKnown(facts)) ? facts : null;
}

/**
 * Whether a file has all the pairs and tensors of its head. A source that was still being copied replaced the model that
 * answered: the head of half a file is whole.
 */
export async function isWholeGguf(path: string): Promise<boolean> {
  const head = await readHead(path);
  return head !== null && (head.end === "unread" || head.tensors?.hasData === true);
}

/** The first bytes alone: cheap enough for each pass of the loop. */
export async function isGguf(path: string): Promise<boolean> {
  return (await readHead(path, () => true)) !== null;
}

const hasFacts: IsEnough = (head, key) => {
  const facts = factsOf(head);
  if (!facts || !isKnown(facts)) return false;
  // The pooling, which few have, stands between the file type and the vocabulary; what is in memory costs nothing.
  return facts.pooling !== undefined || key === null || key.startsWith("tokenizer.");
};

function isKnown({ name, fileType, contextLength }: GgufMetadata): boolean {
  return name !== undefined && fileType !== undefined && contextLength !== undefined;
}

function factsOf({ values }: GgufHead): GgufMetadata | null {
  const architecture = values.get("general.architecture");
  if (typeof architecture !== "string" || !/^[\w.-]{1,64}$/.test(architecture)) return null;
  const number = <K extends string>(name: K, key: string): { [name in K]?: number } => {
    const value = values.get(key);
    const isCount = typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
    return isCount ? ({ [name]: value } as { [name in K]?: number }) : {};
  };
  const name = textIn(values, "general.name");
  const sizeLabel = textIn(values, "general.size_label");
  const { contextLength } = number("contextLength", `${architecture}.context_length`);
  return {
    architecture,
    ...(name === null ? {} : { name }),
    ...(sizeLabel === null ? {} : { sizeLabel }),
    ...number("fileType", "general.file_type"),
    ...(contextLength ? { contextLength } : {}),
    ...number("pooling", `${architecture}.pooling_type`),
  };
}

function textIn(values: GgufHead["values"], key: string): string | null {
  const value = values.get(key);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
}

/** Every small value, the chat templates and the number of weights; several paths are a model's shards in order. */
export async function readGgufDetails(paths: string | readonly string[]): Promise<GgufDetails | null> {
  const [first, ...shards] = typeof paths === "string" ? [paths] : paths;
  const head = first === undefined ? null : await readHead(first);
  const architecture = head?.values.get("general.architecture");
  if (!head || head.end === "cut" || typeof architecture !== "string") return null;
  const counts = [head.tensors?.weights ?? null];
  for (const path of shards) counts.push((await readHead(path))?.tensors?.weights ?? null);
  return describe(head, architecture, counts);
}

function describe(head: GgufHead, architecture: string, counts: readonly (number | null)[]): GgufDetails {
  const { values, arrays, templates } = head;
  const number = (key: string): number | null => {
    const value = values.get(key);
    return typeof value === "number" ? value : null;
  };
  const template = templates.get("");
  return {
    architecture,
    values,
    arrays,
    ...(template === undefined ? {} : { template }),
    templates: new Map([...templates].filter(([name]) => name !== "")),
    parameterCount: sumOf(counts, number("split.count") ?? 1) ?? number("general.parameter_count"),
    hasFimTokens: fimKeys.every((keys) => keys.some((key) => number(`tokenizer.ggml.${key}_token_id`) !== null)),
    pooling: number(`${architecture}.pooling_type`),
    contextLength: number(`${architecture}.context_length`),
    embeddingLength: number(`${architecture}.embedding_length`),
    name: textIn(values, "general.name"),
    basename: textIn(values, "general.basename"),
    sizeLabel: textIn(values, "general.size_label"),
    license: textIn(values, "general.license"),
  };
}

/** The tokens before, behind and at a gap; files of 2024 have the second name. */
const fimKeys = [
  ["fim_pre", "prefix"],
  ["fim_suf", "suffix"],
  ["fim_mid", "middle"],
];

/** Null unless every one of the `expected` files was read. */
function sumOf(counts: readonly (number | null)[], expected: number): number | null {
  const known = counts.filter((count) => count !== null);
  if (counts.length < expected || known.length < counts.length) return null;
  const sum = known.reduce((total, count) => total + count, 0);
  return sum > 0 && Number.isSafeInteger(sum) ? sum : null;
}

/**
 * As {@link readGgufDetails}, for shards in order. Remembers `most` models, as clients ask for the same few again and again; the
 * least recently used go. Files are read again once their size or time has changed.
 */
export function createDetailsReader(most = 200) {
  const known = new Map<string, Promise<GgufDetails | null>>();

  async function read(paths: readonly string[]): Promise<GgufDetails | null> {
    const stats = await Promise.all(paths.map((path) => stat(path).catch(() => null)));
    if (stats.includes(null)) return null;
    const key = JSON.stringify(stats.map((file, index) => [paths[index], file?.size, file?.mtimeMs]));
    const details = known.get(key) ?? readGgufDetails(paths);
    known.delete(key);
    known.set(key, details);
    const [oldest] = known.keys();
    if (known.size > most && oldest !== undefined) known.delete(oldest);
    // A file that could not be read may be readable next time, without a sign of that in its size and time.
    if ((await details) === null && known.get(key) === details) known.delete(key);
    return details;
  }

  return { read };
}
