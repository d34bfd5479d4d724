// A whisper model whose weights are computed and not trained: it says one sentence, whatever it hears, on the real server.
// Attention and feed-forward weights are all zero, so what comes next depends on the place in the text alone: the
// embedding of a place is that of the token that is to follow there.

export interface WhisperScript {
  /** Words of the sentence; each gets a token of its own, with the space before it. */
  readonly words: readonly string[];
  /** Says the words again and again until the server gives up: some seconds of work. */
  readonly endless?: boolean;
}

const vocabulary = 51_864;
const writtenTokens = 50_257;
const endOfText = 50_256;
const firstTimestamp = 50_363;
/** Wide enough that of 51,864 random rows no other is as near to a row as that row itself. */
const state = 64;
const audioPlaces = 1500;
const textPlaces = 448;
const mels = 80;
const filterWidth = 201;
const types = { f32: 0, f16: 1 } as const;

/** 8 MB in ggml's format, English only. The same bytes for the same script. */
export function whisperModel(script: WhisperScript): Buffer {
  const { values: embedding, bytes: embeddingBytes } = sharedEmbedding();
  const parts: Buffer[] = [
    int32s(0x67676d6c, vocabulary, audioPlaces, state, 2, 1, textPlaces, state, 2, 1, mels, 1, mels, filterWidth),
    Buffer.alloc(mels * filterWidth * 4),
    int32s(writtenTokens),
  ];
  const text: Buffer[] = [];
  for (let token = 0; token < writtenTokens; token++) {
    const word = Buffer.from(tokenText(token, script.words));
    text.push(int32s(word.length), word);
  }
  parts.push(Buffer.concat(text));

  function tensor(name: string, type: keyof typeof types, sizes: readonly number[], data?: Buffer): void {
    const bytes = sizes.reduce((product, size) => product * size, type === "f32" ? 4 : 2);
    const label = Buffer.from(name);
    // Sizes stand in the file with the one that varies fastest first.
    parts.push(
      int32s(sizes.length, label.length, types[type], ...sizes.toReversed()),
      label,
      data ?? Buffer.alloc(bytes),
    );
  }
  function norm(name: string): void {
    tensor(`${name}.weight`, "f32", [state], float32s(Array.from({ length: state }, () => 1)));
    tensor(`${name}.bias`, "f32", [state]);
  }
  function attention(name: string): void {
    norm(`${name}_ln`);
    for (const part of ["query", "key", "value", "out"]) {
      tensor(`${name}.${part}.weight`, "f16", [state, state]);
      if (part !== "key") tensor(`${name}.${part}.bias`, "f32", [state]);
    }
  }
  function feedForward(name: string): void {
    norm(`${name}.mlp_ln`);
    tensor(`${name}.mlp.0.weight`, "f16", [4 * state, state]);
    tensor(`${name}.mlp.0.bias`, "f32", [4 * state]);
    tensor(`${name}.mlp.2.weight`, "f16", [state, 4 * state]);
    tensor(`${name}.mlp.2.bias`, "f32", [state]);
  }

  tensor("encoder.positional_embedding", "f32", [audioPlaces, state]);
  tensor("encoder.conv1.weight", "f16", [state, mels, 3]);
  tensor("encoder.conv1.bias", "f32", [state, 1]);
  tensor("encoder.conv2.weight", "f16", [state, state, 3]);
  tensor("encoder.conv2.bias", "f32", [state, 1]);
  norm("encoder.ln_post");
  attention("encoder.blocks.0.attn");
  feedForward("encoder.blocks.0");
  tensor("decoder.positional_embedding", "f32", [textPlaces, state], places(script, embedding));
  tensor("decoder.token_embedding.weight", "f16", [vocabulary, state], embeddingBytes);
  norm("decoder.ln");
  attention("decoder.blocks.0.attn");
  attention("decoder.blocks.0.cross_attn");
  feedForward("decoder.blocks.0");
  return Buffer.concat(parts);
}

/** The server looks for a token that is a space, and answers `map::at` without one. */
function tokenText(token: number, words: readonly string[]): string {
  const word = words[token];
  if (word !== undefined) return ` ${word}`;
  return token === words.length ? " " : `t${token}`;
}

/** For each place the embedding of what follows: a time, the words, a time, the end; much louder than the token there. */
function places({ words, endless = false }: WhisperScript, embedding: Int8Array): Buffer {
  const values = new Float32Array(textPlaces * state);
  for (let place = 0; place < textPlaces; place++) {
    const next = follower(place, words.length, endless);
    for (let i = 0; i < state; i++) values[place * state + i] = 16 * (embedding[next * state + i] ?? 0);
  }
  return float32s(values);
}

function follower(place: number, words: number, endless: boolean): number {
  if (place === 0) return firstTimestamp;
  if (endless) return (place - 1) % words;
  if (place <= words) return place - 1;
  return place === words + 1 ? firstTimestamp + 50 : endOfText;
}

let shared: { readonly values: Int8Array; readonly bytes: Buffer } | undefined;

/** The same in every model, and most of the work. */
function sharedEmbedding(): NonNullable<typeof shared> {
  if (shared) return shared;
  const values = signs(vocabulary * state);
  shared = { values, bytes: halves(values) };
  return shared;
}

/** 1 or -1, in no order but always the same. */
function signs(count: number): Int8Array {
  const values = new Int8Array(count);
  let seed = 0x9e3779b9;
  for (let i = 0; i < count; i++) {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    values[i] = (seed & 1) === 0 ? 1 : -1;
  }
  return values;
}

function halves(values: Int8Array): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  for (const [index, value] of values.entries()) bytes.writeUInt16LE(value > 0 ? 0x3c00 : 0xbc00, index * 2);
  return bytes;
}

function int32s(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeInt32LE(value, index * 4);
  return bytes;
}

function float32s(values: ArrayLike<number>): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (let index = 0; index < values.length; index++) bytes.writeFloatLE(values[index] ?? 0, index * 4);
  return bytes;
}
