// The facts of a model by the pairs of its GGUF head. Pure.
import type { GgufDetails } from "../../core/gguf-facts.ts";
import type { GgufHead } from "./head.ts";

/** `counts`: of the weights in each file, as far as they are known. Null without an architecture. */
export function describeHead({ values, templates }: GgufHead, counts: readonly (number | null)[]): GgufDetails | null {
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
