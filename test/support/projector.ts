// A vision projector for the computed models: beside one of them (as `mmproj-F16.gguf`) the engine takes pictures. What
// it makes of a picture is zeros, so the model says what it would say without.
import { deflateSync } from "node:zlib";
import { type GgufTensor, ggufBytes } from "./scripted/gguf-writer.ts";

const side = 56;
const patch = 14;
const width = 64;
const feedForward = 128;
const colours = 3;

/** The file, 210 kB. `modelWidth` is the width of the model beside it. */
export function projectorBytes(modelWidth = 64): Uint8Array {
  const number = (value: number) => ({ type: "uint32", value }) as const;
  const perColour = (value: number) => ({ type: "float32s", value: [value, value, value] }) as const;
  return ggufBytes({
    metadata: [
      ["general.architecture", { type: "string", value: "clip" }],
      ["general.type", { type: "string", value: "mmproj" }],
      ["general.name", { type: "string", value: "computed projector" }],
      ["general.file_type", number(0)],
      ["clip.has_vision_encoder", { type: "bool", value: true }],
      ["clip.projector_type", { type: "string", value: "mlp" }],
      ["clip.use_gelu", { type: "bool", value: true }],
      ["clip.vision.image_size", number(side)],
      ["clip.vision.patch_size", number(patch)],
      ["clip.vision.embedding_length", number(width)],
      ["clip.vision.feed_forward_length", number(feedForward)],
      ["clip.vision.projection_dim", number(modelWidth)],
      ["clip.vision.block_count", number(2)],
      ["clip.vision.attention.head_count", number(4)],
      ["clip.vision.attention.layer_norm_epsilon", { type: "float32", value: 1e-5 }],
      ["clip.vision.image_mean", perColour(0.5)],
      ["clip.vision.image_std", perColour(0.5)],
    ],
    tensors: [
      { name: "v.class_embd", shape: [width] },
      { name: "v.patch_embd.weight", shape: [patch, patch, colours, width] },
      { name: "v.position_embd.weight", shape: [width, (side / patch) ** 2 + 1] },
      ...pair("v.pre_ln", [width]),
      ...[0, 1].flatMap(layer),
      ...pair("mm.0", [width, modelWidth]),
      ...pair("mm.2", [modelWidth, modelWidth]),
    ],
  });
}

function layer(index: number): GgufTensor[] {
  const block = `v.blk.${index}`;
  return [
    ...["ln1", "ln2"].flatMap((name) => pair(`${block}.${name}`, [width])),
    ...["q", "k", "v", "out"].flatMap((name) => pair(`${block}.attn_${name}`, [width, width])),
    ...pair(`${block}.ffn_up`, [width, feedForward]),
    ...pair(`${block}.ffn_down`, [feedForward, width]),
  ];
}

function pair(name: string, shape: readonly number[]): GgufTensor[] {
  return [
    { name: `${name}.weight`, shape },
    { name: `${name}.bias`, shape: shape.slice(-1) },
  ];
}

/** A PNG of one grey, 8 by 8, as a `data:` address. */
export function pngAddress(): string {
  const rows = Buffer.concat(
    Array.from({ length: 8 }, () => Buffer.from([0, ...Array.from({ length: 8 }, () => 128)])),
  );
  const header = Buffer.from([0, 0, 0, 8, 0, 0, 0, 8, 8, 0, 0, 0, 0]);
  const bytes = Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
  return `data:image/png;base64,${bytes.toString("base64")}`;
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, check]);
}

/** Node 20.19 has none of its own. */
function crc32(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ ((crc & 1) === 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
