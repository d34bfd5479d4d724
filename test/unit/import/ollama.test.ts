// What becomes of the names in Ollama's store.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Imported } from "../../../src/import/imported.ts";
import { ollamaModels, type StoredModel } from "../../../src/import/ollama.ts";
import { parseManifest } from "../../../src/import/ollama-manifest.ts";

const server = { keepAlive: "10m", contextLength: undefined };

function stored(path: string, more: Partial<StoredModel> = {}): StoredModel {
  const [tag = "", model = "", namespace = "library", host = "registry.ollama.ai"] = path.split("/").toReversed();
  return {
    place: { host, namespace, model, tag },
    config: { file_type: "Q4_K_M" },
    params: {},
    weights: `/store/blobs/sha256-${model}`,
    projector: null,
    adapters: [],
    others: [],
    hasTemplate: true,
    ...more,
  };
}

const modelsOf = ({ models }: Imported) => models.map(({ model }) => model);
const linesOf = ({ remarks }: Imported): string[] => remarks.map(({ about, message }) => `${about}: ${message}`);

describe("Ollama's names", () => {
  for (const [path, fileType, id, name] of [
    ["llama3.2/latest", "Q4_K_M", "ollama/llama3.2:Q4_K_M", "llama3.2"],
    ["qwen3/4b", "Q4_K_M", "ollama/qwen3-4b:Q4_K_M", "qwen3:4b"],
    ["llama3/8b-instruct-q8_0", "Q8_0", "ollama/llama3-8b-instruct:Q8_0", "llama3:8b-instruct-q8_0"],
    ["nomic-embed-text/v1.5", "F16", "ollama/nomic-embed-text-v1.5:F16", "nomic-embed-text:v1.5"],
    ["old/7b", "unknown", "ollama/old-7b:7b", "old:7b"],
    ["registry.ollama.ai/alice/chat/latest", "Q4_0", "ollama/alice-chat:Q4_0", "alice/chat"],
    [
      "hf.co/bartowski/Qwen2.5-7B-GGUF/Q6_K",
      "Q6_K",
      "bartowski/Qwen2.5-7B-GGUF:Q6_K",
      "hf.co/bartowski/Qwen2.5-7B-GGUF:Q6_K",
    ],
    [
      "hf.co/bartowski/Qwen2.5-7B-GGUF/latest",
      "Q4_K_M",
      "bartowski/Qwen2.5-7B-GGUF:Q4_K_M",
      "hf.co/bartowski/Qwen2.5-7B-GGUF",
    ],
  ] as const)
    it(`${path} is ${id}, and goes by its old name`, () => {
      const each = stored(path, { config: { file_type: fileType } });
      assert.deepEqual(modelsOf(ollamaModels([each], server)), [
        { id, source: each.weights, keepAlive: "10m", aliases: [name] },
      ]);
    });

  it("of one file are one model: aliases, and variants where they set something", () => {
    const weights = "/store/blobs/sha256-one";
    const imported = ollamaModels(
      [
        stored("gemma3/4b", { weights, params: { temperature: 1, top_k: 64, stop: ["<end_of_turn>"] } }),
        stored("gemma3/latest", { weights }),
        stored("pirate/latest", {
          weights,
          params: {
            num_ctx: 16384,
            num_predict: 200,
            stop: ["Arr!", "<|im_end|>"],
            num_gpu: 20,
            use_mmap: false,
            tfs_z: 1,
          },
          others: ["system"],
        }),
      ],
      server,
    );
    assert.deepEqual(modelsOf(imported), [
      {
        id: "ollama/gemma3:Q4_K_M",
        source: weights,
        ctxSize: 16384,
        keepAlive: "10m",
        aliases: ["gemma3"],
        variants: [
          { name: "pirate", set: { max_tokens: 200, stop: ["Arr!"] } },
          { name: "gemma3:4b", set: { temperature: 1, top_k: 64 } },
        ],
        preset: { "gpu-layers": 20, "no-mmap": true },
      },
    ]);
    assert.deepEqual(linesOf(imported), [
      "pirate:latest: has a system prompt, which a document cannot have: let clients send it",
      "pirate:latest: has parameters without a counterpart: tfs_z",
      "Ollama: has stop sequences that are the template's own tokens: left out, the engine stops there by itself",
    ]);
  });

  it("that would be one id are two", () => {
    const [a, b] = [stored("qwen3/4b", { weights: "/a" }), stored("qwen3-4b/latest", { weights: "/b" })];
    assert.deepEqual(
      modelsOf(ollamaModels([a, b], server)).map(({ id }) => id),
      ["ollama/qwen3-4b:Q4_K_M", "ollama/qwen3-4b:4b"],
    );
  });

  it("keep projector and adapters as files beside gateway.yaml", () => {
    const { models } = ollamaModels([stored("llava/7b", { projector: "/p", adapters: ["/l"] })], server);
    assert.deepEqual(models[0]?.beside, [
      { field: "mmproj", path: "/p", name: "ollama-llava-7b-Q4_K_M-mmproj.gguf" },
      { field: "lora", path: "/l", name: "ollama-llava-7b-Q4_K_M-lora-1.gguf" },
    ]);
  });

  it("get the server's context and keep-alive where its environment is here; else that is a remark", () => {
    const here = ollamaModels([stored("a/latest"), stored("b/latest", { params: { num_ctx: 512 } })], {
      keepAlive: "-1",
      contextLength: "32768",
    });
    assert.deepEqual(
      modelsOf(here).map(({ ctxSize, keepAlive }) => [ctxSize, keepAlive]),
      [
        [32768, "-1"],
        [512, "-1"],
      ],
    );
    assert.deepEqual(linesOf(here), []);
    const away = ollamaModels([stored("a/latest", { hasTemplate: false })], {
      keepAlive: undefined,
      contextLength: undefined,
    });
    assert.deepEqual(Object.keys(modelsOf(away)[0] ?? {}), ["id", "source", "aliases"]);
    assert.match(
      linesOf(away).join("\n"),
      /^Ollama: keeps its keep-alive .*\na:latest: has no chat template in its file/,
    );
  });
});

describe("a manifest", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  const manifest = (...layers: readonly (readonly [string, string])[]): string =>
    JSON.stringify({
      config: { digest },
      layers: layers.map(([kind, digest]) => ({ mediaType: `application/vnd.ollama.image.${kind}`, digest })),
    });

  it("names the files of its layers, and the kinds without a counterpart", () => {
    const b = `sha256:${"b".repeat(64)}`;
    assert.deepEqual(
      parseManifest(manifest(["model", b], ["template", digest], ["params", digest], ["messages", digest])),
      {
        config: "a".repeat(64),
        weights: "b".repeat(64),
        projector: null,
        adapters: [],
        params: "a".repeat(64),
        others: ["messages"],
      },
    );
  });

  for (const [text, why] of [
    ['{"config":', "has a damaged manifest"],
    ["[]", "has a damaged manifest"],
    [manifest(["model", "sha256:../../etc/passwd"]), "has a damaged manifest"],
    [manifest(["tensor", digest]), "is not a GGUF file but single tensors"],
    [manifest(), "has no file here: it runs in Ollama's cloud"],
    [manifest(["model", digest], ["model", digest]), "has several model files in one manifest"],
  ] as const)
    it(`${text.slice(0, 60)}… ${why}`, () => assert.equal(parseManifest(text), why));
});
