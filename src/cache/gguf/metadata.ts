// Reads the few facts that each scan of the cache wants from the head of a GGUF file, and no byte more than they need.
// Files come from anywhere; see gguf-cursor.ts for what is believed of them.
import { type Cursor, type GgufHead, readGguf } from "./cursor.ts";
import { readTensors } from "./tensors.ts";
import { countOf, isScalar, readScalar, readText, skipValue, stringType, tooLong } from "./values.ts";

export interface GgufMetadata {
  readonly architecture: string;
  readonly name?: string;
  /** `general.size_label`, as its maker wrote it: `270M`, `8x7B`. */
  readonly sizeLabel?: string;
  /** `general.file_type`, llama.cpp's number of the quantisation. */
  readonly fileType?: number;
  /** Trained context in tokens. */
  readonly contextLength?: number;
  /** llama.cpp's number of the way in which it makes one vector of a text's; 0 is none. */
  readonly pooling?: number;
}

const longestKey = 65_535;
const longestName = 4096;

/**
 * Metadata of the file at `path`, read no further than needed. Null for whatever is no readable GGUF: missing, not a
 * regular file, truncated before the facts were found, damaged, big endian. Never throws.
 */
export function readGgufMetadata(path: string): Promise<GgufMetadata | null> {
  return readGguf(path, readFacts);
}

/**
 * Whether a file is a GGUF with all the pairs and tensors of its head. A source that was still being copied replaced the
 * model that answered: the head of half a file is whole.
 */
export async function isWholeGguf(path: string): Promise<boolean> {
  return (await readGguf(path, hasAllParts)) === true;
}

/** The first four bytes alone: cheap enough for each pass of the loop. */
export async function hasGgufMagic(path: string): Promise<boolean> {
  return (await readGguf(path, async () => true)) === true;
}

async function hasAllParts({ cursor, tensors, pairs }: GgufHead): Promise<boolean> {
  for (let pair = 0; pair < pairs; pair += 1) {
    const key = await readText(cursor, longestKey);
    const isThere = typeof key === "string" && (await cursor.ensure(4)) && (await skipValue(cursor, cursor.uint32()));
    if (!isThere) return cursor.isSpent();
  }
  const read = await readTensors(cursor, tensors);
  return read === null ? cursor.isSpent() : cursor.skip(read.leastBytes);
}

interface Facts {
  architecture?: string;
  name?: string;
  sizeLabel?: string;
  fileType?: number;
  /** By key, as the architecture that says which one counts may come later. */
  readonly ofArchitectures: Map<string, number>;
  reachedTokenizer: boolean;
}

async function readFacts({ cursor, pairs }: GgufHead): Promise<GgufMetadata | null> {
  const facts: Facts = { ofArchitectures: new Map(), reachedTokenizer: false };
  let known: GgufMetadata | null = null;
  for (let pair = 0; pair < pairs; pair += 1) {
    if (!(await readPair(cursor, facts))) return known ?? (cursor.isSpent() ? toMetadata(facts) : null);
    const found = toMetadata(facts);
    if (found?.name === undefined || found.fileType === undefined || found.contextLength === undefined) continue;
    known = found;
    // The pooling, which few have, stands between the file type and the vocabulary; what is in memory costs nothing.
    if (known.pooling !== undefined || facts.reachedTokenizer || !cursor.has(1)) return known;
  }
  return toMetadata(facts);
}

function toMetadata(facts: Facts): GgufMetadata | null {
  const { architecture, name, sizeLabel, fileType, ofArchitectures } = facts;
  if (architecture === undefined) return null;
  const contextLength = ofArchitectures.get(`${architecture}.context_length`);
  const pooling = ofArchitectures.get(`${architecture}.pooling_type`);
  return {
    architecture,
    ...(name === undefined ? {} : { name }),
    ...(sizeLabel === undefined ? {} : { sizeLabel }),
    ...(fileType === undefined ? {} : { fileType }),
    ...(contextLength === undefined || contextLength === 0 ? {} : { contextLength }),
    ...(pooling === undefined ? {} : { pooling }),
  };
}

/** False where the file ends, is damaged or the budget is spent. */
async function readPair(cursor: Cursor, facts: Facts): Promise<boolean> {
  const key = await readText(cursor, longestKey);
  if (typeof key !== "string" || !(await cursor.ensure(4))) return false;
  const type = cursor.uint32();
  if (key.startsWith("tokenizer.")) facts.reachedTokenizer = true;
  if (key === "general.architecture" && type === stringType) {
    const text = await readText(cursor, longestName);
    if (typeof text !== "string" || !/^[\w.-]{1,64}$/.test(text)) return false;
    facts.architecture ??= text;
    return true;
  }
  if ((key === "general.name" || key === "general.size_label") && type === stringType) {
    const text = await readText(cursor, longestName);
    if (text === null) return false;
    if (text === tooLong || text.trim() === "") return true;
    if (key === "general.name") facts.name ??= text.trim();
    else facts.sizeLabel ??= text.trim();
    return true;
  }
  const isFileType = key === "general.file_type";
  if (isScalar(type) && (isFileType || key.endsWith(".context_length") || key.endsWith(".pooling_type"))) {
    const read = await readScalar(cursor, type);
    if (read === null) return false;
    const value = countOf(type, read);
    if (value === null) return true;
    if (isFileType) facts.fileType ??= value;
    else if (facts.ofArchitectures.size < 32) facts.ofArchitectures.set(key, value);
    return true;
  }
  return skipValue(cursor, type);
}
