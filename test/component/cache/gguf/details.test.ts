// Reading a GGUF's whole head from real files: what it finds, and that nothing a file claims hurts.
import assert from "node:assert/strict";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createDetailsReader, readGgufDetails } from "../../../../src/cache/gguf/metadata.ts";
import { capabilitiesOf } from "../../../../src/cache/layout/capabilities.ts";
import { encoderBytes } from "../../../support/encoder.ts";
import { embeddingModel, insertModel, modelBytes, plainModel, talkingModel } from "../../../support/models.ts";
import { slowness } from "../../../support/pace.ts";
import { scratchFolder } from "../../../support/scratch.ts";
import { type GgufFile, type GgufValue, ggufBytes } from "../../../support/scripted/gguf-writer.ts";

type Pair = readonly [string, GgufValue];

async function fileOf(t: TestContext, bytes: Uint8Array, name = "file.gguf"): Promise<string> {
  const path = join(await scratchFolder(t), name);
  await writeFile(path, bytes);
  return path;
}

async function detailsOf(t: TestContext, metadata: readonly Pair[], tensors: GgufFile["tensors"] = []) {
  return readGgufDetails(await fileOf(t, ggufBytes({ metadata, tensors })));
}

const architecture: Pair = ["general.architecture", { type: "string", value: "qwen2" }];
const text = (value: string): GgufValue => ({ type: "string", value });
const number = (value: number): GgufValue => ({ type: "uint32", value });

test("the head of a computed model is read back whole", async (t) => {
  const bytes = modelBytes({
    ...talkingModel("alpha", { contextLength: 4096 }),
    metadata: [
      ["general.basename", text("Alpha")],
      ["general.size_label", text("105K")],
      ["general.license", text("mit")],
      ["llama.rope.freq_base", { type: "float32", value: 10_000 }],
    ],
  });
  const details = await readGgufDetails(await fileOf(t, bytes));
  assert.ok(details);
  const { values, template, templates, ...facts } = details;
  assert.deepEqual(facts, {
    architecture: "llama",
    parameterCount: 104_640,
    hasFimTokens: false,
    pooling: null,
    contextLength: 4096,
    embeddingLength: 64,
    fileType: 0,
    name: "alpha",
    basename: "Alpha",
    sizeLabel: "105K",
    license: "mit",
  });
  assert.equal(values.get("llama.attention.layer_norm_rms_epsilon"), 0.00001);
  assert.equal(values.get("llama.rope.freq_base"), 10_000);
  assert.equal(values.get("tokenizer.ggml.add_bos_token"), true);
  assert.equal(values.get("tokenizer.ggml.tokens"), null);
  assert.equal(values.get("tokenizer.ggml.scores"), null);
  assert.match(template ?? "", /^\{%- set state/);
  assert.equal(templates.size, 0);
  assert.equal(values.has("tokenizer.chat_template"), false);
});

test("the models of the tests can do what they are named for", async (t) => {
  const capabilities = async (bytes: Uint8Array) => {
    const details = await readGgufDetails(await fileOf(t, bytes));
    return details && capabilitiesOf(details, false);
  };
  assert.deepEqual(await capabilities(modelBytes(talkingModel("a"))), ["completion", "tools", "thinking"]);
  assert.deepEqual(await capabilities(modelBytes(insertModel("a"))), ["completion", "tools", "insert", "thinking"]);
  assert.deepEqual(await capabilities(modelBytes(plainModel("a"))), ["completion"]);
  assert.deepEqual(await capabilities(modelBytes(embeddingModel("a"))), ["embedding"]);
  assert.deepEqual(await capabilities(encoderBytes("a", { pooling: null })), ["embedding"]);
});

test("both names of the tokens around a gap count, and only all three of them", async (t) => {
  const keys = (names: readonly string[]) => names.map((name): Pair => [`tokenizer.ggml.${name}_token_id`, number(1)]);
  const has = async (names: readonly string[]) => (await detailsOf(t, [architecture, ...keys(names)]))?.hasFimTokens;
  assert.equal(await has(["fim_pre", "fim_suf", "fim_mid"]), true);
  assert.equal(await has(["prefix", "suffix", "middle"]), true);
  assert.equal(await has(["fim_pre", "fim_suf"]), false);
});

test("templates: several by name, up to 1 MiB, and none that is larger", async (t) => {
  const details = await detailsOf(t, [
    architecture,
    ["tokenizer.chat_template", text("x".repeat(1024 * 1024))],
    ["tokenizer.chat_template.tool_use", text("{{ tools }}")],
    ["tokenizer.chat_template.rag", text("y".repeat(1024 * 1024 + 1))],
    ["general.description", text("z".repeat(70_000))],
    ["general.last", text("seen")],
  ]);
  assert.equal(details?.template?.length, 1024 * 1024);
  assert.deepEqual([...(details?.templates ?? [])], [["tool_use", "{{ tools }}"]]);
  assert.deepEqual([...(details?.values.keys() ?? [])], ["general.architecture", "general.last"]);
});

test("weights are counted over all shards; where one is missing, what the file claims counts", async (t) => {
  const folder = await scratchFolder(t);
  const shard = async (name: string, metadata: readonly Pair[], size: number): Promise<string> => {
    const path = join(folder, name);
    await writeFile(path, ggufBytes({ metadata, tensors: [{ name: "a", shape: [size, 2] }] }));
    return path;
  };
  const count: Pair = ["split.count", number(2)];
  const first = await shard("m-00001-of-00002.gguf", [architecture, count], 100);
  const second = await shard("m-00002-of-00002.gguf", [count], 10);
  assert.equal((await readGgufDetails([first, second]))?.parameterCount, 220);
  assert.equal((await readGgufDetails(first))?.parameterCount, null);
  assert.equal((await readGgufDetails([first, join(folder, "gone.gguf")]))?.parameterCount, null);
  const claims: Pair = ["general.parameter_count", number(7_000_000)];
  const claiming = await shard("c-00001-of-00002.gguf", [architecture, count, claims], 100);
  assert.equal((await readGgufDetails(claiming))?.parameterCount, 7_000_000);
});

test("what is cut or damaged: null within the metadata, no count of weights within the tensors", async (t) => {
  const path = join(await scratchFolder(t), "cut.gguf");
  const tensors = [
    { name: "first", shape: [4] },
    { name: "second", shape: [4] },
  ];
  const whole = Buffer.from(ggufBytes({ metadata: [architecture, ["a.b", text("end")]], tensors }));
  const metadataEnd = whole.indexOf("end") + 3;
  const infoEnd = whole.indexOf("second") + 6 + 4 + 8 + 4 + 8;
  for (let length = 0; length <= infoEnd; length += 1) {
    await writeFile(path, whole.subarray(0, length));
    const details = await readGgufDetails(path);
    assert.equal(details === null, length < metadataEnd, `${length} bytes`);
    if (details) assert.equal(details.parameterCount, length === infoEnd ? 8 : null, `${length} bytes`);
  }
  const many = Buffer.from(whole);
  many.writeUInt32LE(5, whole.indexOf("first") + 5); // dimensions
  await writeFile(path, many);
  assert.equal((await readGgufDetails(path))?.parameterCount, null);
  assert.equal(await readGgufDetails([]), null);
  assert.equal(await readGgufDetails(join(path, "..")), null);
});

/** The most processor time, in ms, that passes between two turns of the event loop while `work` runs. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = process.cpuUsage();
  let turn = setImmediate(function look() {
    const { user, system } = process.cpuUsage(last);
    longest = Math.max(longest, (user + system) / 1000);
    last = process.cpuUsage();
    turn = setImmediate(look);
  });
  await work();
  clearImmediate(turn);
  return longest;
}

// By processor time: on a busy machine a pause of the clock's says nothing of the reader.
test("a large vocabulary and a hostile head do not hold others up", { timeout: 300_000 }, async (t) => {
  const tokens = Array.from({ length: 150_000 }, (_, index) => `token-${index}`);
  const large = ggufBytes({
    metadata: [
      architecture,
      ["tokenizer.ggml.tokens", { type: "strings", value: tokens }],
      ["tokenizer.ggml.scores", { type: "float32s", value: tokens.map(() => 0) }],
      ["tokenizer.ggml.merges", { type: "strings", value: tokens }],
    ],
    tensors: Array.from({ length: 1000 }, (_, index) => ({ name: `blk.${index}.attn_q.weight`, shape: [8, 8] })),
  });
  const path = await fileOf(t, large);
  await readGgufDetails(path); // compiled by now
  const turn = await longestTurn(async () => assert.equal((await readGgufDetails(path))?.parameterCount, 64_000));
  t.diagnostic(`150,000 tokens: longest turn ${turn.toFixed(1)} ms`);
  assert.ok(turn < 400 * slowness(), `${turn} ms`);

  // As many pairs and tensors as a file of this size can have, then an array without an end.
  const head = (tensors: number, pairs: number): Buffer => {
    const bytes = Buffer.alloc(24);
    bytes.write("GGUF");
    for (const [at, value] of [3, tensors, 0, pairs].entries()) bytes.writeUInt32LE(value, 4 + at * 4);
    return bytes;
  };
  const pair = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 97, 7, 0, 0, 0, 1]);
  const endless = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 97, 9, 0, 0, 0, 8, 0, 0, 0, 255, 255, 255, 255, 255, 0, 0, 0]);
  const named = Buffer.from(ggufBytes({ metadata: [architecture], tensors: [] }));
  const manyTensors = Buffer.concat([named.subarray(0, named.indexOf("qwen2") + 5), Buffer.alloc(24 * 2_000_000)]);
  manyTensors.writeUInt32LE(2_000_000, 8);
  const hostile = [
    Buffer.concat([head(0, 2_000_000), Buffer.alloc(pair.length * 2_000_000, pair)]),
    Buffer.concat([head(0, 1024), Buffer.alloc(pair.length * 1024, pair)]),
    manyTensors,
    Buffer.concat([head(0, 1), endless, Buffer.alloc(80 << 20)]),
  ];
  for (const [index, bytes] of hostile.entries()) {
    const file = await fileOf(t, bytes);
    const held = await longestTurn(() => readGgufDetails(file));
    t.diagnostic(`hostile head ${index}: longest turn ${held.toFixed(1)} ms`);
    assert.ok(held < 400 * slowness(), `hostile head ${index} held up everything for ${held} ms`);
  }
});

test("the reader remembers a model until its file changes, and forgets the one asked for longest ago", async (t) => {
  const folder = await scratchFolder(t);
  const write = async (name: string, model: string) => {
    const path = join(folder, name);
    await writeFile(path, modelBytes(talkingModel(model)));
    return path;
  };
  const reader = createDetailsReader(2);
  const a = await write("a.gguf", "one");
  const first = await reader.read([a]);
  assert.equal(first?.name, "one");
  assert.equal(await reader.read([a]), first, "the same object");
  await write("a.gguf", "another");
  assert.equal((await reader.read([a]))?.name, "another");

  const [b, c] = [await write("b.gguf", "b"), await write("c.gguf", "c")];
  const [ofB] = await Promise.all([reader.read([b]), reader.read([b])]);
  await reader.read([a]);
  await reader.read([c]);
  assert.notEqual(await reader.read([b]), ofB, "forgotten and read again");
  await rm(a);
  assert.equal(await reader.read([a]), null);
  await mkdir(a);
  assert.equal(await reader.read([a]), null);
});
