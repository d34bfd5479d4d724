// What readers ask of a GGUF file: the few facts that each scan of the cache needs, whether the file is whole, and everything
// small in its head. Null if the file is no readable GGUF: absent, not a regular file, truncated, damaged, big endian.
// Nothing here throws.
import { stat } from "node:fs/promises";
import type { GgufDetails } from "../../core/gguf-facts.ts";
import { type GgufHead, type IsEnough, readHead } from "./head.ts";

/** Reads no further than name, file type, trained context and pooling are. */
export async function readGgufFacts(path: string): Promise<GgufDetails | null> {
  const head = await readHead(path, hasFacts);
  const facts = head && describe(head, []);
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
  const facts = describe(head, []);
  if (!facts || !isKnown(facts)) return false;
  // The pooling, which few have, stands between the file type and the vocabulary; what is in memory costs nothing.
  return facts.pooling !== null || key === null || key.startsWith("tokenizer.");
};

function isKnown({ name, fileType, contextLength }: GgufDetails): boolean {
  return name !== null && fileType !== null && contextLength !== null;
}

/** Every small value, the chat templates and the number of weights; several paths are a model's shards in order. */
export async function readGgufDetails(paths: string | readonly string[]): Promise<GgufDetails | null> {
  const [first, ...shards] = typeof paths === "string" ? [paths] : paths;
  const head = first === undefined ? null : await readHead(first);
  if (!head || head.end === "cut") return null;
  const counts = [head.tensors?.weights ?? null];
  for (const path of shards) counts.push((await readHead(path))?.tensors?.weights ?? null);
  return describe(head, counts);
}

/** `counts`: of the weights in each file, as far as they are known. Null without an architecture. */
function describe({ values, templates }: GgufHead, counts: readonly (number | null)[]): GgufDetails | null {
  const number = (key: string): number | null => {
    const value = values.get(key);
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
  };
  const text = (key: string): string | null => {
    const value = values.get(key);
    return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
  };
  const architecture = values.get("general.architecture");
  if (typeof architecture !== "string" || !/^[\w.-]{1,64}$/.test(architecture)) return null;
  const template = templates.get("");
  return {
    architecture,
    values,
    ...(template === undefined ? {} : { template }),
    templates: new Map([...templates].filter(([name]) => name !== "")),
    parameterCount: sumOf(counts, number("split.count") ?? 1) ?? number("general.parameter_count"),
    hasFimTokens: fimKeys.every((keys) => keys.some((key) => number(`tokenizer.ggml.${key}_token_id`) !== null)),
    pooling: number(`${architecture}.pooling_type`),
    contextLength: number(`${architecture}.context_length`) || null,
    embeddingLength: number(`${architecture}.embedding_length`),
    fileType: number("general.file_type"),
    name: text("general.name"),
    basename: text("general.basename"),
    sizeLabel: text("general.size_label"),
    license: text("general.license"),
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
