// The starter model: what a first start without a network chats with. A GGUF whose weights are computed, so that the real
// engine answers with one sentence. Pure; the same bytes on every machine, as the cache keeps files by their digest.

export const starterId = "local/starter-GGUF:Q8_0";
/** Routers take a model's tag from its file name; the weights are F32. */
export const starterFileName = "starter-Q8_0.gguf";
export const starterSentence =
  "I am the starter model of Model Gateway: computed, not trained, and this sentence is all I can say. " +
  "For a real model, add one under `models:` in gateway.yaml, for example ggml-org/gemma-3-270m-it-GGUF:Q8_0.";

const startToken = "<|answer|>";

/** Renders one message, with tags that the engine knows by itself. */
export const messageTemplate = `{{- '<|' + message.role + '|>\\n' }}
{%- if message.role == 'assistant' and message.reasoning_content %}{{- '<think>' + message.reasoning_content + '</think>' }}{%- endif %}
{%- if message.content is string %}{{- message.content }}{%- endif %}
{%- if message.tool_calls %}
{%- for call in message.tool_calls %}{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}</tool_call>' }}{%- endfor %}
{%- endif %}
{{- '</s>\\n' }}
`;

/** Renders tools and their calls: without it the engine forces the answer to a chat with tools into a grammar. */
const template = `{%- if tools %}<|tools|>{{ tools | tojson }}
To call one, answer with <tool_call>{"name": NAME, "arguments": OBJECT}</tool_call>
{% endif %}
{%- for message in messages %}
${messageTemplate}{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>\n${startToken}{%- endif %}`;

const width = 64;
const headCount = 4;
const headWidth = width / headCount;
const endToken = 2;
const kinds = { normal: 1, unknown: 2, control: 3, byte: 6 } as const;

/** The whole file; takes some milliseconds. */
export function starterModel(): Uint8Array {
  // Two words each, as no piece may occur twice: a vocabulary has each text once, and each token one successor.
  const pieces = starterSentence.match(/\S+(?: \S+)?(?: |$)/g) ?? [];
  const vocabulary: readonly (readonly [text: string, kind: number])[] = [
    ["<unk>", kinds.unknown],
    ["<s>", kinds.control],
    ["</s>", kinds.control],
    ...Array.from(
      { length: 256 },
      (_, byte) => [`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`, kinds.byte] as const,
    ),
    [startToken, kinds.control],
    ...pieces.map((piece) => [piece.replaceAll(" ", "\u2581"), kinds.normal] as const),
  ];
  const firstPiece = vocabulary.length - pieces.length;
  const texts = vocabulary.map(([text]) => text);
  const scores = texts.map((_, index) => f32(-index));
  const tokenKinds = vocabulary.map(([, kind]) => u32(kind));
  const metadata = [
    entry("general.architecture", string("llama")),
    entry("general.name", string("Model Gateway starter")),
    entry("general.file_type", uint32(0)),
    entry("llama.context_length", uint32(2048)),
    entry("llama.embedding_length", uint32(width)),
    entry("llama.block_count", uint32(1)),
    entry("llama.feed_forward_length", uint32(width)),
    entry("llama.attention.head_count", uint32(headCount)),
    entry("llama.attention.head_count_kv", uint32(1)),
    entry("llama.attention.layer_norm_rms_epsilon", float32(1e-5)),
    entry("llama.rope.dimension_count", uint32(headWidth)),
    entry("llama.vocab_size", uint32(texts.length)),
    entry("tokenizer.ggml.model", string("llama")),
    entry("tokenizer.ggml.tokens", array(types.string, texts.map(chars))),
    entry("tokenizer.ggml.scores", array(types.float32, scores)),
    entry("tokenizer.ggml.token_type", array(types.int32, tokenKinds)),
    entry("tokenizer.ggml.unknown_token_id", uint32(0)),
    entry("tokenizer.ggml.bos_token_id", uint32(1)),
    entry("tokenizer.ggml.eos_token_id", uint32(endToken)),
    entry("tokenizer.ggml.add_bos_token", Buffer.concat([u32(types.bool), Buffer.of(1)])),
    entry("tokenizer.chat_template", string(template)),
  ];
  return gguf(metadata, tensorsOf(texts.length, firstPiece));
}

/** Each piece has a dimension of its own: 1 in the embedding before it, 16 in its output row; RMS norm makes that a logit of 128. */
function tensorsOf(tokens: number, firstPiece: number): Tensor[] {
  const embedding = new Float32Array(tokens * width);
  const output = new Float32Array(tokens * width);
  for (let token = 0; token < tokens; token++) {
    const dimension = token < firstPiece ? 0 : token - firstPiece + 1;
    const successor = firstPiece + dimension < tokens ? firstPiece + dimension : endToken;
    embedding[token * width + dimension] = 1;
    output[successor * width + dimension] = 16;
  }
  const zeros = (name: string, ...shape: number[]): Tensor => ({
    name: `blk.0.${name}.weight`,
    shape,
    data: new Float32Array(shape.reduce((product, size) => product * size, 1)),
  });
  return [
    { name: "token_embd.weight", shape: [width, tokens], data: embedding },
    { name: "output_norm.weight", shape: [width], data: new Float32Array(width).fill(1) },
    { name: "output.weight", shape: [width, tokens], data: output },
    zeros("attn_norm", width),
    zeros("attn_q", width, width),
    zeros("attn_k", width, headWidth),
    zeros("attn_v", width, headWidth),
    zeros("attn_output", width, width),
    zeros("ffn_norm", width),
    zeros("ffn_gate", width, width),
    zeros("ffn_up", width, width),
    zeros("ffn_down", width, width),
  ];
}

interface Tensor {
  readonly name: string;
  /** The dimension that varies fastest comes first. A product of 8 values keeps the next one at 32 bytes. */
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** GGUF version 3, little endian. */
function gguf(metadata: readonly Buffer[], tensors: readonly Tensor[]): Uint8Array {
  let offset = 0;
  const infos = tensors.map(({ name, shape, data }) => {
    const info = [chars(name), u32(shape.length), ...shape.map(u64), u32(0), u64(offset)];
    offset += data.byteLength;
    return Buffer.concat(info);
  });
  const sizes = [u32(3), u64(tensors.length), u64(metadata.length)];
  const head = Buffer.concat([Buffer.from("GGUF"), ...sizes, ...metadata, ...infos]);
  const padding = Buffer.alloc(-head.length & 31);
  return Buffer.concat([head, padding, ...tensors.map(({ data }) => new Uint8Array(data.buffer))]);
}

const types = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;

const entry = (key: string, value: Buffer): Buffer => Buffer.concat([chars(key), value]);
const uint32 = (value: number): Buffer => Buffer.concat([u32(types.uint32), u32(value)]);
const float32 = (value: number): Buffer => Buffer.concat([u32(types.float32), f32(value)]);
const string = (value: string): Buffer => Buffer.concat([u32(types.string), chars(value)]);

function array(type: number, items: readonly Buffer[]): Buffer {
  return Buffer.concat([u32(types.array), u32(type), u64(items.length), ...items]);
}

function chars(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u64(bytes.length), bytes]);
}

/** Every machine that the engine runs on is little endian. */
const u32 = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value: number): Buffer => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const f32 = (value: number): Buffer => Buffer.from(Float32Array.of(value).buffer);
