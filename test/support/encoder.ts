// A computed BERT: it reads and never writes, as embedding models on the hub do. Its file answers embeddings of 64 numbers.
import { poolings } from "../../src/core/gguf-facts.ts";
import { type GgufTensor, ggufBytes } from "./scripted/gguf-writer.ts";

const width = 64;
const feedForward = 128;
const contextLength = 512;

export interface EncoderOptions {
  /** Null: the file does not say, as older ones do not. Default `cls`. */
  readonly pooling?: keyof typeof poolings | null;
}

/** The file, 250 kB. It knows printable ASCII, a character at a time. */
export function encoderBytes(name: string, options: EncoderOptions = {}): Uint8Array {
  const { pooling = "cls" } = options;
  const characters = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index));
  const texts = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ...characters.map((text) => `\u2581${text}`), ...characters];
  const number = (value: number) => ({ type: "uint32", value }) as const;
  return ggufBytes({
    metadata: [
      ["general.architecture", { type: "string", value: "bert" }],
      ["general.name", { type: "string", value: name }],
      ["bert.context_length", number(contextLength)],
      ["bert.embedding_length", number(width)],
      ["bert.block_count", number(1)],
      ["bert.feed_forward_length", number(feedForward)],
      ["bert.attention.head_count", number(4)],
      ["bert.attention.layer_norm_epsilon", { type: "float32", value: 1e-5 }],
      ["general.file_type", number(0)],
      ["bert.attention.causal", { type: "bool", value: false }],
      ...(pooling === null ? [] : [["bert.pooling_type", number(poolings[pooling])] as const]),
      ["tokenizer.ggml.model", { type: "string", value: "bert" }],
      ["tokenizer.ggml.token_type_count", number(2)],
      ["tokenizer.ggml.tokens", { type: "strings", value: texts }],
      ["tokenizer.ggml.token_type", { type: "int32s", value: texts.map((_, index) => (index < 4 ? 3 : 1)) }],
      ["tokenizer.ggml.unknown_token_id", number(1)],
      ["tokenizer.ggml.bos_token_id", number(2)],
      ["tokenizer.ggml.cls_token_id", number(2)],
      ["tokenizer.ggml.eos_token_id", number(3)],
      ["tokenizer.ggml.seperator_token_id", number(3)],
      ["tokenizer.ggml.padding_token_id", number(0)],
    ],
    tensors: tensors(texts.length),
  });
}

function tensors(vocabulary: number): GgufTensor[] {
  const ones = new Float32Array(width).fill(1);
  // Any numbers that differ from token to token.
  const varied = (count: number, step: number) => Float32Array.from({ length: count }, (_, at) => Math.sin(at * step));
  const norm = (name: string): GgufTensor[] => [
    { name: `${name}.weight`, shape: [width], data: ones },
    { name: `${name}.bias`, shape: [width] },
  ];
  const linear = (name: string, from: number, to: number): GgufTensor[] => [
    { name: `${name}.weight`, shape: [from, to], data: varied(from * to, 0.7) },
    { name: `${name}.bias`, shape: [to] },
  ];
  return [
    { name: "token_embd.weight", shape: [width, vocabulary], data: varied(width * vocabulary, 0.37) },
    { name: "token_types.weight", shape: [width, 2] },
    { name: "position_embd.weight", shape: [width, contextLength], data: varied(width * contextLength, 0.11) },
    ...norm("token_embd_norm"),
    ...["attn_q", "attn_k", "attn_v", "attn_output"].flatMap((name) => linear(`blk.0.${name}`, width, width)),
    ...norm("blk.0.attn_output_norm"),
    ...linear("blk.0.ffn_up", width, feedForward),
    ...linear("blk.0.ffn_down", feedForward, width),
    ...norm("blk.0.layer_output_norm"),
  ];
}
