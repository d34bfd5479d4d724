// Reading a GGUF's head from real files: what it finds, how little it reads, and that nothing a file claims hurts.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, open, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readGgufFacts } from "../../../../src/cache/gguf/metadata.ts";
import { starterModel } from "../../../../src/starter/starter-model.ts";
import { modelBytes, slowModel, talkingModel, writeModelFile } from "../../../support/models.ts";
import { type GgufFile, type GgufValue, ggufBytes } from "../../../support/scripted/gguf-writer.ts";

type Pair = readonly [string, GgufValue];

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "gguf-metadata-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function readBytes(t: TestContext, bytes: Uint8Array) {
  const path = join(await temporaryFolder(t), "file.gguf");
  await writeFile(path, bytes);
  return factsAt(path);
}

/** What a scan asks for, as far as it is known. */
async function factsAt(path: string): Promise<object | null> {
  const details = await readGgufFacts(path);
  if (!details) return null;
  const { architecture, name, sizeLabel, fileType, contextLength, pooling } = details;
  const facts = { architecture, name, sizeLabel, fileType, contextLength, pooling };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== null));
}

function header(metadata: readonly Pair[], tensors: GgufFile["tensors"] = []): Uint8Array {
  return ggufBytes({ metadata, tensors });
}

const architecture: Pair = ["general.architecture", { type: "string", value: "qwen2" }];
const contextLength: Pair = ["qwen2.context_length", { type: "uint32", value: 32_768 }];

/** A pair whose value is given byte by byte, for the types and lies that the writer has no words for. */
function rawFile(
  pairs: readonly { readonly key: string; readonly type: number; readonly value: Buffer }[],
  count?: bigint,
) {
  const parts = [Buffer.from("GGUF"), uint32(3), uint64(0n), uint64(count ?? BigInt(pairs.length))];
  for (const { key, type, value } of pairs)
    parts.push(uint64(BigInt(key.length)), Buffer.from(key), uint32(type), value);
  return Buffer.concat(parts);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

function string(text: string): Buffer {
  return Buffer.concat([uint64(BigInt(Buffer.byteLength(text))), Buffer.from(text)]);
}

const rawArchitecture = { key: "general.architecture", type: 8, value: string("llama") };

test("the facts of a computed model are read back", async (t) => {
  const model = talkingModel("alpha", { contextLength: 4096, fileType: 15 });
  assert.deepEqual(await readBytes(t, modelBytes(model)), {
    architecture: "llama",
    name: "alpha",
    fileType: 15,
    contextLength: 4096,
  });
});

test("a file written with a hole in it has its full size and the same facts", async (t) => {
  const path = join(await temporaryFolder(t), "slow.gguf");
  await writeModelFile(path, slowModel("slow"));
  const file = await open(path);
  t.after(() => file.close());
  assert.ok((await file.stat()).size > 20_000_000);
  assert.equal((await readGgufFacts(path))?.contextLength, 8192);
});

test("version 2 is the same format; 1, 4 and big endian are not", async (t) => {
  const bytes = starterModel();
  for (const [version, isRead] of [
    [1, false],
    [2, true],
    [3, true],
    [4, false],
    [0x03000000, false],
  ] as const) {
    const copy = Buffer.from(bytes);
    copy.writeUInt32LE(version, 4);
    assert.equal((await readBytes(t, copy)) !== null, isRead, `version ${version}`);
  }
});

test("what is missing is left out, and without an architecture there is nothing to say", async (t) => {
  assert.deepEqual(await readBytes(t, header([architecture])), { architecture: "qwen2" });
  assert.deepEqual(await readBytes(t, header([contextLength, architecture])), {
    architecture: "qwen2",
    contextLength: 32_768,
  });
  const otherArchitecture: Pair = ["llama.context_length", { type: "uint32", value: 1 }];
  assert.deepEqual(await readBytes(t, header([architecture, otherArchitecture])), { architecture: "qwen2" });
  assert.equal(await readBytes(t, header([contextLength])), null);
});

test("facts behind a large vocabulary are found, and a 64-bit context length is read", async (t) => {
  const tokens = Array.from({ length: 200_000 }, (_, index) => `token-${index}`);
  const bytes = header([
    architecture,
    ["tokenizer.ggml.tokens", { type: "strings", value: tokens }],
    ["tokenizer.ggml.scores", { type: "float32s", value: tokens.map(() => 0) }],
    contextLength,
    ["general.file_type", { type: "uint32", value: 7 }],
  ]);
  assert.deepEqual(await readBytes(t, bytes), { architecture: "qwen2", fileType: 7, contextLength: 32_768 });
  const wide = rawFile([rawArchitecture, { key: "llama.context_length", type: 10, value: uint64(10_485_760n) }]);
  assert.deepEqual(await readBytes(t, wide), { architecture: "llama", contextLength: 10_485_760 });
});

test("reading stops at the last fact: whatever follows is not looked at", async (t) => {
  const facts: Pair[] = [
    architecture,
    ["general.name", { type: "string", value: "Early" }],
    ["general.file_type", { type: "uint32", value: 2 }],
    contextLength,
  ];
  const known = { architecture: "qwen2", name: "Early", fileType: 2, contextLength: 32_768 };
  const bytes = Buffer.from(header([...facts, ["rest", { type: "string", value: "cut away" }]]));
  assert.deepEqual(await readBytes(t, bytes.subarray(0, bytes.indexOf("rest"))), known);
});

test("the pooling is found where converters put it, behind the file type and before the vocabulary", async (t) => {
  const facts: Pair[] = [
    architecture,
    ["general.name", { type: "string", value: "Embedder" }],
    ["general.size_label", { type: "string", value: " 0.6B " }],
    contextLength,
    ["general.file_type", { type: "uint32", value: 1 }],
  ];
  const pooling: Pair = ["qwen2.pooling_type", { type: "uint32", value: 3 }];
  const vocabulary: Pair[] = [
    ["tokenizer.ggml.model", { type: "string", value: "gpt2" }],
    ["tokenizer.ggml.tokens", { type: "strings", value: ["a", "b"] }],
  ];
  const known = { architecture: "qwen2", name: "Embedder", sizeLabel: "0.6B", fileType: 1, contextLength: 32_768 };
  assert.deepEqual(await readBytes(t, header([...facts, pooling, ...vocabulary])), { ...known, pooling: 3 });
  assert.deepEqual(
    await readBytes(t, header([...facts, ...vocabulary, pooling])),
    known,
    "further back it is not sought",
  );
  const ofAnother: Pair = ["bert.pooling_type", { type: "uint32", value: 1 }];
  assert.deepEqual(await readBytes(t, header([...facts, ofAnother, ...vocabulary])), known);
});

test("values of the wrong type or out of range are as good as absent", async (t) => {
  const contextLengths = [
    { type: 5, value: uint32(0xffffffff) }, // int32 -1
    { type: 4, value: uint32(0) },
    { type: 6, value: uint32(0x45000800) }, // float32 2048.5
    { type: 7, value: Buffer.of(1) },
    { type: 8, value: string("4096") },
    { type: 10, value: uint64(2n ** 63n) },
  ];
  for (const { type, value } of contextLengths) {
    const bytes = rawFile([rawArchitecture, { key: "llama.context_length", type, value }]);
    assert.deepEqual(await readBytes(t, bytes), { architecture: "llama" }, `type ${type}`);
  }
});

test("lengths that no file has are not believed", { timeout: 120_000 }, async (t) => {
  const huge = 2n ** 64n - 1n;
  const lies = [
    rawFile([{ key: "a", type: 8, value: uint64(huge) }]),
    rawFile([{ key: "general.architecture", type: 8, value: uint64(huge) }]),
    rawFile([{ key: "a", type: 9, value: Buffer.concat([uint32(4), uint64(huge)]) }]),
    rawFile([{ key: "a", type: 9, value: Buffer.concat([uint32(8), uint64(huge)]) }]),
    rawFile([{ key: "a", type: 9, value: Buffer.concat([uint32(9), uint64(1n)]) }]), // an array of arrays
    rawFile([{ key: "a", type: 13, value: uint64(0n) }]), // no such type
    rawFile([rawArchitecture], huge),
    Buffer.concat([Buffer.from("GGUF"), uint32(3), uint64(0n), uint64(1n), uint64(huge)]),
    rawFile([{ key: "general.architecture", type: 8, value: string("../../etc\n") }]),
  ];
  for (const [index, bytes] of lies.entries()) {
    assert.equal(await readBytes(t, bytes), null, `lie ${index}`);
    assert.equal(await readBytes(t, Buffer.concat([bytes, Buffer.alloc(200_000)])), null, `lie ${index} with room`);
  }
});

test("an endless vocabulary in a file of 1 GB is given up, with what was found before", {
  timeout: 300_000,
}, async (t) => {
  const path = join(await temporaryFolder(t), "endless.gguf");
  const endless = { key: "tokens", type: 9, value: Buffer.concat([uint32(8), uint64(2n ** 40n)]) };
  await writeFile(path, rawFile([rawArchitecture, endless]));
  const file = await open(path, "r+");
  try {
    await file.truncate(2 ** 30);
  } finally {
    await file.close();
  }
  assert.deepEqual(await factsAt(path), { architecture: "llama" });
});

test("a file cut anywhere before its facts is no GGUF", async (t) => {
  const path = join(await temporaryFolder(t), "cut.gguf");
  const whole = Buffer.from(header([architecture, contextLength, ["rest", { type: "strings", value: ["a", "b"] }]]));
  const end = whole.lastIndexOf("b") + 1;
  for (let length = 0; length < end; length += 1) {
    await writeFile(path, whole.subarray(0, length));
    assert.equal(await readGgufFacts(path), null, `${length} bytes`);
  }
});

test("what is no GGUF at all is null: text, nothing, a folder, a missing file, a dangling link, a pipe", async (t) => {
  const folder = await temporaryFolder(t);
  const at = (name: string) => join(folder, name);
  await writeFile(at("text.gguf"), "<html>404</html>".repeat(10));
  await writeFile(at("empty.gguf"), "");
  await symlink(at("nowhere"), at("dangling.gguf"));
  const names = ["text.gguf", "empty.gguf", "missing.gguf", "dangling.gguf", "."];
  if (process.platform !== "win32") {
    execFileSync("mkfifo", [at("pipe.gguf")]);
    names.push("pipe.gguf");
  }
  for (const name of names) assert.equal(await readGgufFacts(at(name)), null, name);
});
