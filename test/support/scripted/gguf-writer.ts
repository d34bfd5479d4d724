// Writes GGUF version 3: metadata, F32 tensors and zeros, little endian, the same bytes on every machine.
// Pure: it knows the container and nothing of models; it touches no file.

export type GgufValue =
  | { readonly type: "uint16" | "uint32" | "int32" | "float32"; readonly value: number }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "strings"; readonly value: readonly string[] }
  | { readonly type: "float32s" | "int32s"; readonly value: readonly number[] };

export interface GgufTensor {
  readonly name: string;
  /** Sizes in GGUF's order: the dimension that varies fastest comes first. */
  readonly shape: readonly number[];
  /** F32 values; absent: all zero. */
  readonly data?: Float32Array;
  /** Only for zeros, default F32. IQ1_M takes a 19th of the room, for a first dimension that is a multiple of 256; the engine rearranges Q4_0. */
  readonly type?: keyof typeof tensorTypes;
}

export interface GgufFile {
  readonly metadata: readonly (readonly [key: string, value: GgufValue])[];
  readonly tensors: readonly GgufTensor[];
}

/** A file as its written part and its full size: whatever lies between the two is zero, so it can stay a hole on disk. */
export interface GgufImage {
  readonly head: Uint8Array;
  /** Bytes of the whole file. */
  readonly size: number;
}

/** ggml's number of a type, and how many values go into how many bytes. */
const tensorTypes = {
  F32: { id: 0, values: 1, bytes: 4 },
  Q4_0: { id: 2, values: 32, bytes: 18 },
  IQ1_M: { id: 29, values: 256, bytes: 56 },
} as const;

const alignment = 32;
const maxDimensions = 4;
const typeIds = { uint16: 2, uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;

/** Lays a file out. Tensors without data cost no memory when they come last. Throws on a shape that does not fit its data. */
export function ggufImage(file: GgufFile): GgufImage {
  const layout = layOut(file.tensors);
  const header = createSink();
  header.text("GGUF");
  header.uint32(3);
  header.uint64(file.tensors.length);
  header.uint64(file.metadata.length);
  for (const [key, value] of file.metadata) {
    header.string(key);
    writeValue(header, value);
  }
  for (const { tensor, offset } of layout.placed) {
    header.string(tensor.name);
    header.uint32(tensor.shape.length);
    for (const size of tensor.shape) header.uint64(size);
    header.uint32(tensorTypes[tensor.type ?? "F32"].id);
    header.uint64(offset);
  }
  const headerBytes = header.bytes();
  const dataStart = align(headerBytes.length);
  const head = new Uint8Array(dataStart + layout.writtenSize);
  head.set(headerBytes);
  const view = new DataView(head.buffer);
  for (const { tensor, offset } of layout.placed) {
    let at = dataStart + offset;
    for (const value of tensor.data ?? []) {
      view.setFloat32(at, value, true);
      at += 4;
    }
  }
  return { head, size: dataStart + layout.size };
}

/** The whole file in memory, zeros included. */
export function ggufBytes(file: GgufFile): Uint8Array {
  return wholeImage(ggufImage(file));
}

export function wholeImage(image: GgufImage): Uint8Array {
  if (image.head.length === image.size) return image.head;
  const bytes = new Uint8Array(image.size);
  bytes.set(image.head);
  return bytes;
}

interface PlacedTensor {
  readonly tensor: GgufTensor;
  readonly offset: number;
}

function layOut(tensors: readonly GgufTensor[]) {
  const placed: PlacedTensor[] = [];
  let size = 0;
  let writtenSize = 0;
  for (const tensor of tensors) {
    if (tensor.shape.length === 0 || tensor.shape.length > maxDimensions) {
      throw new RangeError(`tensor ${tensor.name} has ${tensor.shape.length} dimensions`);
    }
    const count = tensor.shape.reduce((product, dimension) => product * dimension, 1);
    const type = tensorTypes[tensor.type ?? "F32"];
    if (tensor.data && (tensor.data.length !== count || type !== tensorTypes.F32)) {
      throw new RangeError(`tensor ${tensor.name} needs ${count} F32 values and has ${tensor.data.length}`);
    }
    if ((tensor.shape[0] ?? 0) % type.values !== 0) {
      throw new RangeError(`tensor ${tensor.name} cannot be ${tensor.type} with ${tensor.shape[0]} values in a row`);
    }
    const bytes = (count / type.values) * type.bytes;
    placed.push({ tensor, offset: size });
    if (tensor.data) writtenSize = size + bytes;
    size = align(size + bytes);
  }
  return { placed, size, writtenSize };
}

function align(offset: number): number {
  return Math.ceil(offset / alignment) * alignment;
}

function writeValue(sink: Sink, value: GgufValue): void {
  switch (value.type) {
    case "uint16":
    case "uint32":
    case "int32":
    case "float32":
      sink.uint32(typeIds[value.type]);
      sink[value.type](value.value);
      return;
    case "bool":
      sink.uint32(typeIds.bool);
      sink.uint8(value.value ? 1 : 0);
      return;
    case "string":
      sink.uint32(typeIds.string);
      sink.string(value.value);
      return;
    case "strings":
      writeArrayHead(sink, typeIds.string, value.value.length);
      for (const item of value.value) sink.string(item);
      return;
    case "float32s":
      writeArrayHead(sink, typeIds.float32, value.value.length);
      for (const item of value.value) sink.float32(item);
      return;
    case "int32s":
      writeArrayHead(sink, typeIds.int32, value.value.length);
      for (const item of value.value) sink.int32(item);
      return;
  }
}

function writeArrayHead(sink: Sink, elementType: number, count: number): void {
  sink.uint32(typeIds.array);
  sink.uint32(elementType);
  sink.uint64(count);
}

interface Sink {
  uint8(value: number): void;
  uint16(value: number): void;
  uint32(value: number): void;
  int32(value: number): void;
  float32(value: number): void;
  uint64(value: number): void;
  text(value: string): void;
  string(value: string): void;
  bytes(): Uint8Array;
}

function createSink(): Sink {
  const encoder = new TextEncoder();
  let buffer = new Uint8Array(64 * 1024);
  let view = new DataView(buffer.buffer);
  let length = 0;

  function reserve(count: number): number {
    if (length + count > buffer.length) {
      const larger = new Uint8Array(Math.max(buffer.length * 2, length + count));
      larger.set(buffer);
      buffer = larger;
      view = new DataView(buffer.buffer);
    }
    const at = length;
    length += count;
    return at;
  }

  function append(bytes: Uint8Array): void {
    const at = reserve(bytes.length);
    buffer.set(bytes, at);
  }

  function uint64(value: number): void {
    const at = reserve(8);
    view.setBigUint64(at, BigInt(value), true);
  }

  // `reserve` may replace `view`, so it has to run before `view` is looked at.
  return {
    uint16(value) {
      const at = reserve(2);
      view.setUint16(at, value, true);
    },
    uint8(value) {
      const at = reserve(1);
      view.setUint8(at, value);
    },
    uint32(value) {
      const at = reserve(4);
      view.setUint32(at, value, true);
    },
    int32(value) {
      const at = reserve(4);
      view.setInt32(at, value, true);
    },
    float32(value) {
      const at = reserve(4);
      view.setFloat32(at, value, true);
    },
    uint64,
    text(value) {
      append(encoder.encode(value));
    },
    string(value) {
      const bytes = encoder.encode(value);
      uint64(bytes.length);
      append(bytes);
    },
    bytes() {
      return buffer.slice(0, length);
    },
  };
}
