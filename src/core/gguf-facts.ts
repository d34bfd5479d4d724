// What the metadata of a model's files amounts to, as plain data, and the few rules that read it. Pure.

export interface GgufDetails {
  readonly architecture: string;
  /** Every pair of the metadata by key, template and oversized texts left out; null: an array, which is not read. */
  readonly values: ReadonlyMap<string, string | number | boolean | null>;
  /** `tokenizer.chat_template`; absent where there is none, or one of more than 1 MiB. */
  readonly template?: string;
  /** Further templates by name, `tool_use` for one. */
  readonly templates: ReadonlyMap<string, string>;
  /** Weights in all files together; null where a file that should be there could not be read. */
  readonly parameterCount: number | null;
  /** It has the tokens that stand before and behind a gap to fill in. */
  readonly hasFimTokens: boolean;
  /** llama.cpp's number of the way in which it makes one vector of a text's; 0: none; null: the file does not say. */
  readonly pooling: number | null;
  /** Trained context in tokens. */
  readonly contextLength: number | null;
  readonly embeddingLength: number | null;
  /** llama.cpp's number of the quantization. */
  readonly fileType: number | null;
  readonly name: string | null;
  readonly basename: string | null;
  /** As its maker wrote it: `270M`, `8x7B`. */
  readonly sizeLabel: string | null;
  /** A short name such as `apache-2.0`. */
  readonly license: string | null;
}

/** llama.cpp's numbers of the ways in which a model makes one vector of a text's. */
export const poolings = { none: 0, mean: 1, cls: 2, last: 3, rank: 4 } as const;

/** Architectures that read and never write: they have no next token to give. */
const readingArchitectures: ReadonlySet<string> = new Set(
  (
    "bert eurobert gemma-embedding gemma-embedding2 jina-bert-v2 jina-bert-v3 llama-embed modern-bert neo-bert nomic-bert " +
    "nomic-bert-moe t5encoder"
  ).split(" "),
);

/** For embeddings or ranking and not for chats: its file has a pooling type, or its architecture generates no text. */
export function isForEmbeddings(architecture: string | null, pooling: number | null): boolean {
  return (architecture !== null && readingArchitectures.has(architecture)) || (pooling ?? poolings.none) > 0;
}

/** A number of weights as model lists show it: `270M`, `7.6B`, `671B`. */
export function parameterSize(count: number): string {
  for (const [unit, size] of units) {
    // 999,950,000 is 1.0B and not 1000M.
    if (count >= size * 0.9995) return `${(count / size).toFixed(count < size * 99.95 ? 1 : 0)}${unit}`;
  }
  return String(Math.round(count));
}

const units = [
  ["T", 1e12],
  ["B", 1e9],
  ["M", 1e6],
  ["K", 1e3],
] as const;
