// The container: what is written is laid out as the format says, the same on every run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type GgufFile, ggufBytes, ggufImage } from "../../support/scripted/gguf-writer.ts";

const small: GgufFile = {
  metadata: [
    ["general.architecture", { type: "string", value: "llama" }],
    ["a.number", { type: "uint32", value: 0xfffffffe }],
    ["a.flag", { type: "bool", value: true }],
    ["some.words", { type: "strings", value: ["Grüße", ""] }],
    ["some.kinds", { type: "int32s", value: [-1, 3] }],
    ["some.scores", { type: "float32s", value: [0.5] }],
  ],
  tensors: [
    { name: "first", shape: [3], data: Float32Array.of(1, -2, 0.5) },
    { name: "second", shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) },
    { name: "zeros", shape: [5, 3] },
  ],
};

test("the header, every kind of value and the tensors stand where the format puts them", () => {
  const bytes = ggufBytes(small);
  const view = new DataView(bytes.buffer);
  let at = 0;
  function take(count: number): number {
    at += count;
    return at - count;
  }
  const uint32 = () => view.getUint32(take(4), true);
  const int32 = () => view.getInt32(take(4), true);
  const uint64 = () => Number(view.getBigUint64(take(8), true));
  const text = (length: number) => new TextDecoder().decode(bytes.subarray(take(length), at));
  const string = () => text(uint64());

  assert.equal(text(4), "GGUF");
  assert.deepEqual([uint32(), uint64(), uint64()], [3, 3, 6]);
  assert.deepEqual([string(), uint32(), string()], ["general.architecture", 8, "llama"]);
  assert.deepEqual([string(), uint32(), uint32()], ["a.number", 4, 0xfffffffe]);
  assert.deepEqual([string(), uint32(), bytes[take(1)]], ["a.flag", 7, 1]);
  assert.deepEqual([string(), uint32(), uint32(), uint64()], ["some.words", 9, 8, 2]);
  assert.deepEqual([string(), string()], ["Grüße", ""]);
  assert.deepEqual([string(), uint32(), uint32(), uint64()], ["some.kinds", 9, 5, 2]);
  assert.deepEqual([int32(), int32()], [-1, 3]);
  assert.deepEqual([string(), uint32(), uint32(), uint64()], ["some.scores", 9, 6, 1]);
  assert.equal(view.getFloat32(take(4), true), 0.5);

  assert.deepEqual([string(), uint32(), uint64(), uint32(), uint64()], ["first", 1, 3, 0, 0]);
  assert.deepEqual([string(), uint32(), uint64(), uint64(), uint32(), uint64()], ["second", 2, 2, 2, 0, 32]);
  assert.deepEqual([string(), uint32(), uint64(), uint64(), uint32(), uint64()], ["zeros", 2, 5, 3, 0, 64]);

  const data = Math.ceil(at / 32) * 32;
  const floats = (offset: number, count: number) =>
    Array.from({ length: count }, (_, index) => view.getFloat32(data + offset + index * 4, true));
  assert.deepEqual(floats(0, 3), [1, -2, 0.5]);
  assert.deepEqual(floats(32, 4), [1, 2, 3, 4]);
  assert.deepEqual(
    floats(64, 15),
    Array.from({ length: 15 }, () => 0),
  );
  assert.equal(bytes.length, data + 64 + 64, "the last tensor is padded too");
});

test("the image leaves out the zeros at the end and counts them", () => {
  const { head, size } = ggufImage(small);
  const whole = ggufBytes(small);
  assert.equal(size, whole.length);
  assert.ok(head.length < size);
  assert.deepEqual(whole.subarray(0, head.length), head);
  assert.ok(whole.subarray(head.length).every((byte) => byte === 0));
});

test("the same file is the same bytes", () => {
  assert.deepEqual(ggufBytes(small), ggufBytes(small));
});

test("data that does not fit its shape is refused", () => {
  const tensors = [{ name: "wrong", shape: [2, 2], data: Float32Array.of(1) }];
  assert.throws(() => ggufBytes({ metadata: [], tensors }), /wrong needs 4 F32 values and has 1/);
  assert.throws(() => ggufBytes({ metadata: [], tensors: [{ name: "flat", shape: [] }] }), /flat has 0 dimensions/);
  const odd = [{ name: "odd", shape: [100, 256], type: "IQ1_M" as const }];
  assert.throws(() => ggufBytes({ metadata: [], tensors: odd }), /odd cannot be IQ1_M with 100 values in a row/);
});

test("zeros can be of a type that takes little room", () => {
  const metadata: GgufFile["metadata"] = [];
  const plain = ggufImage({ metadata, tensors: [{ name: "zeros", shape: [512, 64] }] });
  const packed = ggufImage({ metadata, tensors: [{ name: "zeros", shape: [512, 64], type: "IQ1_M" }] });
  assert.equal(plain.size - packed.size, 512 * 64 * 4 - (512 * 64 * 56) / 256);
});
