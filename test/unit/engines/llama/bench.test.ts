// What llama-bench is told of a model's settings, and what is read of its output.
import assert from "node:assert/strict";
import { test } from "node:test";
import { benchSettings, readBench } from "../../../../src/engines/llama/bench.ts";

const help = `
  -b, --batch-size <n>      (default: 2048)
  -ctk, --cache-type-k <t>  (default: f16)
  -ngl, --n-gpu-layers <n>  (default: -1)
  -nkvo, --no-kv-offload <0|1>
  -fa, --flash-attn <on|off|auto>
  -dev, --device <dev0/dev1/...>
  -ts, --tensor-split <ts0/ts1/..>
  -embd, --embeddings <0|1>
  --repack <0|1>  --no-host <0|1>
`;
const settingsOf = (values: Record<string, string>) => benchSettings(new Map(Object.entries(values)), help);

test("options of both programs are passed; what names files is no setting, and the others are named", () => {
  const { args, settings, leftOut } = settingsOf({
    "hf-repo": "acme/a:Q8_0",
    "stop-timeout": "3",
    "ctx-size": "8192",
    "batch-size": "512",
    "cache-type-k": "q8_0",
    "flash-attn": "on",
    "gpu-layers": "99",
    temp: "0.2",
    // Not in this build's help.
    threads: "4",
  });
  assert.equal(args.join(" "), "--batch-size 512 --cache-type-k q8_0 --flash-attn on --n-gpu-layers 99");
  assert.deepEqual(settings, { "batch-size": "512", "cache-type-k": "q8_0", "flash-attn": "on", "gpu-layers": "99" });
  assert.deepEqual(leftOut, ["ctx-size", "temp", "threads"]);
});

test("switches become 0 or 1, by the name that llama-bench has", () => {
  for (const [key, value, ...expected] of [
    ["no-kv-offload", "true", "--no-kv-offload", "1"],
    ["kv-offload", "true", "--no-kv-offload", "0"],
    ["kv-offload", "false", "--no-kv-offload", "1"],
    ["no-repack", "true", "--repack", "0"],
    ["repack", "true", "--repack", "1"],
    ["no-host", "true", "--no-host", "1"],
    // A model for embeddings writes nothing.
    ["embedding", "true", "--embeddings", "1", "--n-gen", "0"],
    ["embeddings", "false", "--embeddings", "0"],
  ] as const)
    assert.deepEqual(settingsOf({ [key]: value }).args, expected, `${key} = ${value}`);
});

test("a list is one value there, and no series of measurements", () => {
  const { args } = settingsOf({ "tensor-split": "3,1", device: "CUDA0,CUDA1" });
  assert.equal(args.join(" "), "--device CUDA0/CUDA1 --tensor-split 3/1");
});

test("layers by another word than a number are left out, as llama-bench takes none", () => {
  assert.deepEqual(settingsOf({ "n-gpu-layers": "all" }), { args: [], settings: {}, leftOut: ["n-gpu-layers"] });
});

test("the output is read; anything else is none", () => {
  const row = {
    build_commit: "Debian",
    build_number: 11669,
    cpu_info: "a CPU",
    gpu_info: "",
    backends: "CPU",
    model_type: "llama 8B Q4_K - Medium",
    n_prompt: 512,
    n_gen: 0,
    avg_ts: 100.5,
    stddev_ts: 1.5,
  };
  const output = JSON.stringify([row, { ...row, n_prompt: 0, n_gen: 128, avg_ts: 12, stddev_ts: 0 }]);
  assert.deepEqual(readBench(output), {
    build: "11669 (Debian)",
    hardware: "a CPU, CPU",
    type: "llama 8B Q4_K - Medium",
    tests: [
      { kind: "prompt", tokens: 512, tokensPerSecond: 100.5, deviation: 1.5 },
      { kind: "generation", tokens: 128, tokensPerSecond: 12, deviation: 0 },
    ],
  });
  for (const other of ["", "[", "{}", "[]", '[{"n_prompt":512}]']) assert.equal(readBench(other), null, other);
});
