// A Piper voice that is computed and not trained: a tone, as long as the text has sounds. Inputs and outputs are those of a
// real voice, so every engine that runs real ones runs it; what it says is checked by its length and pitch.

/** Samples that each phoneme id makes at length scale 1. */
export const samplesPerId = 96;
export const toneHertz = 440;
/** Loudest sample before an engine makes it louder. */
const amplitude = 0.3;

export const americanEnglish = {
  code: "en_US",
  family: "en",
  region: "US",
  name_native: "English",
  name_english: "English",
  country_english: "United States",
};

/** The description beside the model. Every phoneme of English that espeak-ng names with one letter has a number. */
export function piperVoiceConfig(sampleRate: number, facts: object = {}): object {
  const symbols =
    "_^$ !'(),-.:;?abcdefhijklmnopqrstuvwxyzæçðøħŋœǀǁǂǃɐɑɒɓɔɕɖɗɘəɚɛɜɞɟɠɡɢɣɤɥɦɧɨɪɫɬɭɮɯɰɱɲɳɴɵɶɸɹɺɻɽɾʀʁʂʃʄʈʉʊʋʌʍʎʏʐʑʒʔʕʘʙʛʜʝʟʡʢʲˈˌːˑ˞βθχᵻⱱ0123456789̧̪̯̩̃ʰˤε↓#\"̻̺̺̩g";
  const ids: Record<string, readonly number[]> = {};
  for (const symbol of symbols) ids[symbol] ??= [Object.keys(ids).length];
  return {
    audio: { sample_rate: sampleRate, quality: "low" },
    espeak: { voice: "en-us" },
    inference: { noise_scale: 0.667, length_scale: 1, noise_w: 0.8 },
    phoneme_type: "espeak",
    phoneme_map: {},
    phoneme_id_map: ids,
    num_symbols: 256,
    num_speakers: 1,
    speaker_id_map: {},
    piper_version: "1.0.0",
    language: americanEnglish,
    dataset: "tone",
    ...facts,
  };
}

/**
 * The model (1 kB): `sin(place × step)` over as many places as ids × 96 × length scale, as `[1, 1, 1, N]`. With several
 * speakers it takes a `sid`, and each next one speaks that much higher: twice, three times the tone.
 */
export function piperVoiceModel(sampleRate: number, speakers = 1): Buffer {
  const step = (2 * Math.PI * toneHertz) / sampleRate;
  const graph = concat([
    ...[
      node("Shape", ["input"], "shape"),
      node("Gather", ["shape", "one"], "ids"),
      node("Cast", ["ids"], "idCount", [attribute("to", float)]),
      node("Mul", ["idCount", "perId"], "plainLength"),
      node("Gather", ["scales", "one"], "lengthScale"),
      node("Mul", ["plainLength", "lengthScale"], "length"),
      node("Range", ["zero", "length", "unit"], "places"),
      ...(speakers > 1
        ? [
            node("Cast", ["sid"], "speaker", [attribute("to", float)]),
            node("Add", ["speaker", "unit"], "times"),
            node("Mul", ["times", "step"], "ownStep"),
          ]
        : []),
      node("Mul", ["places", speakers > 1 ? "ownStep" : "step"], "angles"),
      node("Sin", ["angles"], "tone"),
      node("Mul", ["tone", "amplitude"], "sound"),
      node("Reshape", ["sound", "outputShape"], "output"),
    ].map((bytes) => field(1, bytes)),
    field(2, "tone"),
    ...[
      int64Tensor("one", [], [1]),
      int64Tensor("outputShape", [4], [1, 1, 1, -1]),
      floatTensor("perId", samplesPerId),
      floatTensor("zero", 0),
      floatTensor("unit", 1),
      floatTensor("step", step),
      floatTensor("amplitude", amplitude),
    ].map((bytes) => field(5, bytes)),
    field(11, valueInfo("input", int64, [1, "phonemes"])),
    field(11, valueInfo("input_lengths", int64, [1])),
    field(11, valueInfo("scales", float, [3])),
    ...(speakers > 1 ? [field(11, valueInfo("sid", int64, [1]))] : []),
    field(12, valueInfo("output", float, [1, 1, 1, "time"])),
  ]);
  return concat([number(1, 8), field(2, "model-gateway"), field(7, graph), field(8, number(2, 13))]);
}

const float = 1;
const int64 = 7;

function node(type: string, inputs: readonly string[], output: string, attributes: readonly Buffer[] = []): Buffer {
  return concat([
    ...inputs.map((name) => field(1, name)),
    field(2, output),
    field(4, type),
    ...attributes.map((bytes) => field(5, bytes)),
  ]);
}

/** A whole number (kind 2). */
function attribute(name: string, value: number): Buffer {
  return concat([field(1, name), number(3, value), number(20, 2)]);
}

function int64Tensor(name: string, sizes: readonly number[], values: readonly number[]): Buffer {
  const raw = Buffer.alloc(values.length * 8);
  for (const [index, value] of values.entries()) raw.writeBigInt64LE(BigInt(value), index * 8);
  return concat([...sizes.map((size) => number(1, size)), number(2, int64), field(8, name), field(9, raw)]);
}

function floatTensor(name: string, value: number): Buffer {
  const raw = Buffer.alloc(4);
  raw.writeFloatLE(value);
  return concat([number(2, float), field(8, name), field(9, raw)]);
}

function valueInfo(name: string, type: number, sizes: readonly (number | string)[]): Buffer {
  const shape = sizes.map((size) => field(1, typeof size === "number" ? number(1, size) : field(2, size)));
  return concat([field(1, name), field(2, field(1, concat([number(1, type), field(2, concat(shape))])))]);
}

function field(id: number, value: Buffer | string): Buffer {
  const bytes = Buffer.from(value);
  return concat([varint(id * 8 + 2), varint(bytes.length), bytes]);
}

function number(id: number, value: number): Buffer {
  return concat([varint(id * 8), varint(value)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 127) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
}

function concat(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts);
}
