// A model that says what it is told: a GGUF whose weights are computed, run by the real engine like any other.
// One layer of zeros leaves the residual stream equal to the last token's embedding, so the model is a table of
// successors. Pure: no file, no clock, no randomness but from the model's name.
import { type GgufFile, type GgufImage, type GgufTensor, type GgufValue, ggufBytes, ggufImage } from "./gguf-writer.ts";
import { cutIntoPieces } from "./pieces.ts";

/** What the model says after a control token. */
export interface Chain {
  /** Text of the control token, which the chat template ends a prompt with. */
  readonly start: string;
  readonly says: string;
  /** Starts over instead of stopping; ends only where the context does. */
  readonly endless?: boolean;
}

export interface ComputedModel {
  readonly name: string;
  /** Trained context in tokens. */
  readonly contextLength: number;
  readonly chains: readonly Chain[];
  /** Which chain follows a prompt that ends in none of the control tokens. */
  readonly fallback: number;
  /** Null: the engine's own. */
  readonly template: string | null;
  /** Further control tokens, each with the metadata key that names it. */
  readonly controlTokens?: readonly (readonly [key: string, text: string])[];
  /**
   * More make it larger and slower and say nothing else; default 1 layer, 64 wide (a multiple of 64), feed-forward 128.
   * Few large layers rather than many small ones: threads wait for each other at every step of every layer, and on
   * cores that are busy with something else 480 layers took seconds for a token.
   */
  readonly layers?: number;
  readonly width?: number;
  readonly feedForward?: number;
  /** So many further texts in its vocabulary, which each load reads: models that people use have 32,000 to 262,000. */
  readonly unsaid?: number;
  /** Of the zeros; default the smallest that the sizes allow. */
  readonly zeros?: "Q4_0";
  /** `general.file_type` to claim; the weights are F32 (0) whatever it says. */
  readonly fileType?: number;
  /** Further pairs of metadata, which stand before the vocabulary. */
  readonly metadata?: readonly (readonly [key: string, value: GgufValue])[];
}

/** The model as a GGUF file, without the zeros that a large one ends with. Throws a RangeError where no model can say that. */
export function computedModel(model: ComputedModel): GgufImage {
  return ggufImage(computedFile(model));
}

/** The same in so many files, as llama-gguf-split makes them: the first has the metadata, each some of the tensors. */
export function computedShards(model: ComputedModel, count: number): Uint8Array[] {
  const { metadata, tensors } = computedFile(model);
  const each = Math.ceil(tensors.length / count);
  return Array.from({ length: count }, (_, index) => {
    const split = [
      ["split.no", { type: "uint16", value: index }],
      ["split.count", { type: "uint16", value: count }],
      ["split.tensors.count", { type: "int32", value: tensors.length }],
    ] as const;
    const part = tensors.slice(index * each, (index + 1) * each);
    return ggufBytes({ metadata: [...(index === 0 ? metadata : []), ...split], tensors: part });
  });
}

function computedFile(model: ComputedModel): GgufFile {
  const { name, contextLength, layers = 1, width = 64, feedForward = 128, fileType = 0, template } = model;
  if (width < 64 || width % 64 !== 0) throw new RangeError(`width ${width} is no multiple of 64`);
  const vocabulary = buildVocabulary(model);
  const { texts } = vocabulary;
  const { embedding, output } = computeWeights(vocabulary, width, name);
  const keyValueWidth = width / headCount;
  const metadata: (readonly [string, GgufValue])[] = [
    ["general.architecture", { type: "string", value: "llama" }],
    ["general.name", { type: "string", value: name }],
    ["general.file_type", { type: "uint32", value: fileType }],
    ["llama.context_length", { type: "uint32", value: contextLength }],
    ["llama.embedding_length", { type: "uint32", value: width }],
    ["llama.block_count", { type: "uint32", value: layers }],
    ["llama.feed_forward_length", { type: "uint32", value: feedForward }],
    ["llama.attention.head_count", { type: "uint32", value: headCount }],
    ["llama.attention.head_count_kv", { type: "uint32", value: 1 }],
    ["llama.attention.layer_norm_rms_epsilon", { type: "float32", value: 1e-5 }],
    ["llama.rope.dimension_count", { type: "uint32", value: keyValueWidth }],
    ["llama.vocab_size", { type: "uint32", value: texts.length }],
    ...(model.metadata ?? []),
    ["tokenizer.ggml.model", { type: "string", value: "llama" }],
    ["tokenizer.ggml.tokens", { type: "strings", value: texts }],
    ["tokenizer.ggml.scores", { type: "float32s", value: texts.map((_, index) => -index) }],
    ["tokenizer.ggml.token_type", { type: "int32s", value: vocabulary.kinds }],
    ["tokenizer.ggml.unknown_token_id", { type: "uint32", value: 0 }],
    ["tokenizer.ggml.bos_token_id", { type: "uint32", value: 1 }],
    ["tokenizer.ggml.eos_token_id", { type: "uint32", value: endToken }],
    ["tokenizer.ggml.add_bos_token", { type: "bool", value: true }],
    ...vocabulary.named.map(([key, value]) => [key, { type: "uint32", value }] as const),
  ];
  if (template !== null) metadata.push(["tokenizer.chat_template", { type: "string", value: template }]);
  const tensors: GgufTensor[] = [
    { name: "token_embd.weight", shape: [width, texts.length], data: embedding },
    { name: "output_norm.weight", shape: [width], data: new Float32Array(width).fill(1) },
    { name: "output.weight", shape: [width, texts.length], data: output },
  ];
  const zeros = model.zeros ?? (width % 256 === 0 && feedForward % 256 === 0 ? "IQ1_M" : "F32");
  for (let layer = 0; layer < layers; layer += 1) {
    const block = `blk.${layer}`;
    tensors.push(
      { name: `${block}.attn_norm.weight`, shape: [width] },
      { name: `${block}.attn_q.weight`, shape: [width, width], type: zeros },
      { name: `${block}.attn_k.weight`, shape: [width, keyValueWidth], type: zeros },
      { name: `${block}.attn_v.weight`, shape: [width, keyValueWidth], type: zeros },
      { name: `${block}.attn_output.weight`, shape: [width, width], type: zeros },
      { name: `${block}.ffn_norm.weight`, shape: [width] },
      { name: `${block}.ffn_gate.weight`, shape: [width, feedForward], type: zeros },
      { name: `${block}.ffn_up.weight`, shape: [width, feedForward], type: zeros },
      { name: `${block}.ffn_down.weight`, shape: [feedForward, width], type: zeros },
    );
  }
  return { metadata, tensors };
}

const headCount = 4;
const endToken = 2;
const tokenKinds = { normal: 1, unknown: 2, control: 3, byte: 6 } as const;

interface Vocabulary {
  readonly texts: readonly string[];
  readonly kinds: readonly number[];
  /** What follows a token; a token without an entry (any that a raw prompt may end in) is followed by `firstOfDefault`. */
  readonly successors: ReadonlyMap<number, number>;
  readonly firstOfDefault: number;
  /** Metadata keys of control tokens, and their numbers. */
  readonly named: readonly (readonly [key: string, token: number])[];
}

function buildVocabulary({ chains, fallback, controlTokens = [], unsaid = 0 }: ComputedModel): Vocabulary {
  const texts: string[] = [];
  const kinds: number[] = [];
  const successors = new Map<number, number>();
  function add(text: string, kind: number): number {
    kinds.push(kind);
    return texts.push(text) - 1;
  }

  add("<unk>", tokenKinds.unknown);
  add("<s>", tokenKinds.control);
  add("</s>", tokenKinds.control);
  for (let byte = 0; byte < 256; byte += 1) {
    add(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`, tokenKinds.byte);
  }
  for (let code = 32; code < 127; code += 1) add(asTokenText(String.fromCharCode(code)), tokenKinds.normal);
  const named = controlTokens.map(([key, text]) => [key, add(text, tokenKinds.control)] as const);
  const starts = chains.map(({ start }) => {
    const known = controlTokens.findIndex(([, text]) => text === start);
    return named[known]?.[1] ?? add(start, tokenKinds.control);
  });

  const taken = new Set(texts.map((text) => text.replaceAll("\u2581", " ")));
  let firstOfDefault: number | undefined;
  for (const [index, { says, endless }] of chains.entries()) {
    if (says === "") throw new RangeError(`script ${index} says nothing`);
    if (says.includes("\u2581"))
      throw new RangeError(`script ${index} has U+2581, which the vocabulary uses for a space`);
    const chain = cutIntoPieces(says, taken).map((piece) => add(asTokenText(piece), tokenKinds.normal));
    const first = chain[0] ?? endToken;
    let previous = starts[index] ?? 0;
    for (const token of chain) {
      successors.set(previous, token);
      previous = token;
    }
    successors.set(previous, endless ? first : endToken);
    if (index === fallback) firstOfDefault = first;
  }
  if (firstOfDefault === undefined) throw new RangeError("a scripted model needs a default script");
  for (let index = 0; index < unsaid; index += 1) add(`unsaid${index}`, tokenKinds.normal);
  return { texts, kinds, successors, firstOfDefault, named };
}

function asTokenText(text: string): string {
  return text.replaceAll(" ", "\u2581");
}

/**
 * An embedding stands for the token that follows: a random vector of ±1 per follower, shared by all its predecessors, and
 * the follower's output row is twice that vector. Then the right logit is 2 × width and the others stay far below, also
 * for a token that many scripts lead to (the end). A sum over predecessors would let the end drown the rest.
 */
function computeWeights(vocabulary: Vocabulary, width: number, seed: string) {
  const { texts, successors, firstOfDefault } = vocabulary;
  const random = createRandom(seed);
  const embedding = new Float32Array(texts.length * width);
  const output = new Float32Array(texts.length * width);
  const directions = new Map<number, Float32Array>();
  for (const follower of new Set([firstOfDefault, ...successors.values()])) {
    const direction = Float32Array.from({ length: width }, () => (random() & 0x10000 ? 1 : -1));
    directions.set(follower, direction);
    output.set(
      direction.map((value) => value * 2),
      follower * width,
    );
  }
  for (let token = 0; token < texts.length; token += 1) {
    const follower = successors.get(token);
    const direction = directions.get(follower ?? firstOfDefault);
    if (direction) embedding.set(direction, token * width);
    // Tokens of a prompt differ a little, so that different texts have different embedding vectors.
    for (let flips = follower === undefined ? 4 : 0; flips > 0; flips -= 1) {
      const at = token * width + (random() % width);
      embedding[at] = -(embedding[at] ?? 0);
    }
  }
  return { embedding, output };
}

/** Integer arithmetic only, so that every machine computes the same bytes (mulberry32, seeded with FNV-1a). */
function createRandom(seed: string): () => number {
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(seed)) state = Math.imul(state ^ byte, 0x01000193);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}
