// Reads the whole head of a model's GGUF files: every small value, the chat templates and the number of weights.
// For what looks at one model; a scan of the cache takes gguf-metadata.ts. See gguf-cursor.ts for what is believed.

import type { GgufDetails } from "../../core/gguf-facts.ts";
import { type Cursor, type GgufHead, readGguf } from "./cursor.ts";
import { readTensors } from "./tensors.ts";
import {
  arrayType,
  type GgufArray,
  isScalar,
  readScalar,
  readText,
  skipArray,
  skipValue,
  stringType,
  tooLong,
} from "./values.ts";

export type { GgufDetails } from "../../core/gguf-facts.ts";

const longestKey = 65_535;
const longestText = 64 * 1024;
const longestTemplate = 1024 * 1024;
const mostText = 4 * 1024 * 1024;

/**
 * What the files of a model say of it; several paths are its shards in order. Null where the first is no readable GGUF,
 * or is cut within its metadata. Never throws.
 */
export async function readGgufDetails(paths: string | readonly string[]): Promise<GgufDetails | null> {
  const [first, ...shards] = typeof paths === "string" ? [paths] : paths;
  const found = first === undefined ? null : await readGguf(first, readHead);
  const architecture = found?.values.get("general.architecture");
  if (!found || typeof architecture !== "string") return null;
  const counts = [found.weights];
  for (const path of shards) counts.push((await readGguf(path, readHead))?.weights ?? null);
  return describe(found, architecture, counts);
}

interface Head {
  readonly values: Map<string, string | number | boolean>;
  readonly arrays: Map<string, GgufArray>;
  readonly templates: Map<string, string>;
  /** Null where the list of tensors is damaged. */
  weights: number | null;
}

function describe(head: Head, architecture: string, counts: readonly (number | null)[]): GgufDetails {
  const { values, arrays, templates } = head;
  const number = (key: string): number | null => {
    const value = values.get(key);
    return typeof value === "number" ? value : null;
  };
  const text = (key: string): string | null => {
    const value = values.get(key);
    return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
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
    name: text("general.name"),
    basename: text("general.basename"),
    sizeLabel: text("general.size_label"),
    license: text("general.license"),
  };
}

/** What stands before, behind and at a gap; files of 2024 have the second name. */
const fimKeys = [
  ["fim_pre", "prefix"],
  ["fim_suf", "suffix"],
  ["fim_mid", "middle"],
];

/** Null unless every one of the `expected` files was read. */
function sumOf(counts: readonly (number | null)[], expected: number): number | null {
  if (counts.length < expected) return null;
  let sum = 0;
  for (const count of counts) {
    if (count === null) return null;
    sum += count;
  }
  return sum > 0 && Number.isSafeInteger(sum) ? sum : null;
}

async function readHead({ cursor, tensors, pairs }: GgufHead): Promise<Head | null> {
  const head: Head = { values: new Map(), arrays: new Map(), templates: new Map(), weights: null };
  let room = mostText;
  for (let pair = 0; pair < pairs; pair += 1) {
    const used = await readPair(cursor, head, room);
    if (used === null) return cursor.isSpent() ? head : null;
    room -= used;
  }
  head.weights = (await readTensors(cursor, tensors))?.weights ?? null;
  return head;
}

/** How many bytes of text it kept, of at most `room`; null where the file ends, is damaged or the budget is spent. */
async function readPair(cursor: Cursor, head: Head, room: number): Promise<number | null> {
  const key = await readText(cursor, longestKey);
  if (typeof key !== "string" || !(await cursor.ensure(4))) return null;
  const type = cursor.uint32();
  if (room <= 0) return (await skipValue(cursor, type)) ? 0 : null;
  if (isScalar(type)) {
    const value = await readScalar(cursor, type);
    if (value === null) return null;
    head.values.set(key, value);
    return key.length;
  }
  if (type === arrayType) {
    const array = await skipArray(cursor);
    if (array === null) return null;
    head.arrays.set(key, array);
    return key.length;
  }
  if (type !== stringType) return null;
  const template = /^tokenizer\.chat_template(?:\.(.+))?$/.exec(key);
  const text = await readText(cursor, Math.min(template ? longestTemplate : longestText, room));
  if (text === null) return null;
  if (text === tooLong) return key.length;
  if (template) head.templates.set(template[1] ?? "", text);
  else head.values.set(key, text);
  return key.length + text.length;
}
