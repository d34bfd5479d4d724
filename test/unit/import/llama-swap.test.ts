// What becomes of a configuration of llama-swap, and of each key without a counterpart.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noneAllowed } from "../../../src/core/preset-keys.ts";
import { validateDocument } from "../../../src/desired/document/validate.ts";
import { withSideFiles } from "../../../src/import/imported.ts";
import { llamaSwapModels } from "../../../src/import/llama-swap.ts";
import { parseSwapConfig } from "../../../src/import/swap-config.ts";

function imported(text: string) {
  const config = parseSwapConfig("config.yaml", text);
  const around = {
    resolve: (path: string) => (path.startsWith("/") ? path : `/swap/${path}`),
    environment: { HOME: "/home/me" },
    presetAllow: noneAllowed,
  };
  const { models, remarks } = llamaSwapModels(config, around);
  const documents = models.map(withSideFiles);
  const validation = validateDocument({ version: 1, models: documents });
  assert.deepEqual(validation.ok ? [] : validation.problems, []);
  return {
    models: documents,
    beside: models.flatMap(({ beside }) => beside),
    lines: remarks.map(({ line, about, message }) => `${line}: ${about}: ${message}`),
  };
}

/** One model `m` with this command. */
const commandOf = (cmd: string) => imported(`models:\n  m:\n    cmd: |\n${cmd.replaceAll(/^/gm, "      ")}\n`);

const whole = `
healthCheckTimeout: 500
globalTTL: 300
macros:
  "latest-llama": >
    /opt/llama-server-ec9e0301
    --port \${PORT}
  default_ctx: 4096
  args: "--ctx-size \${default_ctx}"
  dir: "\${env.HOME}/models"
groups:
  always:
    persistent: true
    members: [embed]
hooks:
  on_startup:
    preload: [gpt]
models:
  gpt:
    macros:
      default_ctx: 16384
    cmd: |
      # \${latest-llama} is a macro
      \${latest-llama}
      --model \${dir}/gpt-oss-20b-Q8_0.gguf \\
      \${args} --jinja -fa
      --temp 0.7 --metrics
      --log-file /tmp/x.log
    name: GPT
    ttl: 60
    aliases:
      - gpt-4o-mini
      - { id: gpt-4o, unlisted: false }
    concurrencyLimit: 4
    filters:
      stripParams: "top_p"
      setParamsByID:
        "\${MODEL_ID}:high":
          chat_template_kwargs: { reasoning_effort: high }
  embed:
    cmd: llama-server --port \${PORT} -hf ggml-org/embeddinggemma-300M-GGUF:Q8_0 --embeddings
    ttl: 0
    proxy: "http://127.0.0.1:\${PORT}"
  vllm:
    cmd: docker run --rm vllm/vllm --model x
  lost:
    cmd: \${nothing} -m a.gguf
`;

describe("a configuration of llama-swap", () => {
  it("becomes models, with everything else by its line", () => {
    const { models, lines } = imported(whole);
    assert.deepEqual(models, [
      {
        id: "local/gpt-oss-20b:Q8_0",
        source: "/home/me/models/gpt-oss-20b-Q8_0.gguf",
        ctxSize: 16384,
        keepAlive: 60,
        maxQueue: 4,
        aliases: ["gpt", "gpt-4o-mini", "gpt-4o"],
        variants: [
          {
            name: "gpt:high",
            set: { chat_template_kwargs: { reasoning_effort: "high" } },
            force: ["chat_template_kwargs"],
          },
        ],
        preset: { jinja: true, "flash-attn": "on", temp: 0.7 },
      },
      {
        id: "ggml-org/embeddinggemma-300M-GGUF:Q8_0",
        keepAlive: -1,
        pinned: true,
        aliases: ["embed"],
        preset: { embeddings: true },
      },
    ]);
    assert.deepEqual(lines, [
      "2: healthCheckTimeout: has no counterpart: use the flag --load-timeout",
      "15: hooks: has no counterpart: load models with `model-gateway load`",
      "11: groups: models are loaded beside each other as far as memory and --models-max allow; members of a persistent group are pinned",
      "28: gpt: --log-file has no counterpart: the gateway takes it with --preset-allow log-file only",
      "29: gpt: name has no counterpart: model lists have ids and aliases",
      "36: gpt: stripParams has no counterpart: list the members in a variant's `force`",
      "43: embed: proxy has no counterpart: the gateway starts, probes and ends llama-server itself",
      "45: vllm: is not taken over: it runs docker, which the gateway does not: it runs llama-server on this machine",
      "47: lost: is not taken over: ${nothing} is not defined",
    ]);
  });

  it("with one process for several names becomes one model with variants", () => {
    const { models, lines } = imported(`
models:
  think: { cmd: "llama-server -hf acme/q:Q8_0 -c 8192 --temp 0.6 --top-p 0.95" }
  plain: { cmd: "llama-server -hf acme/q:Q8_0 -c 8192 --temp 0 --chat-template-kwargs '{\\"enable_thinking\\":false}'" }
  bare: { cmd: "llama-server -hf acme/q:Q8_0 -c 8192", filters: { setParams: { seed: 1, model: x, temprature: 1 } } }
  long: { cmd: "llama-server -hf acme/q:Q8_0 -c 65536" }
`);
    assert.deepEqual(models, [
      {
        id: "acme/q:Q8_0",
        ctxSize: 8192,
        variants: [
          { name: "think", set: { temperature: 0.6, top_p: 0.95 } },
          { name: "plain", set: { temperature: 0, chat_template_kwargs: { enable_thinking: false } } },
          { name: "bare", set: { seed: 1 }, force: ["seed"] },
        ],
      },
    ]);
    assert.deepEqual(lines, [
      "3: think: bare does not set model: not a member that a variant sets: the variant's name stands for it",
      "3: think: bare does not set temprature: no member of a request (did you mean temperature?)",
      "6: long: is not taken over: acme/q:Q8_0 is a model already, with other settings of its process",
    ]);
  });

  it("with one local file in two processes becomes two models of that file", () => {
    const { models } = imported(`
models:
  short: { cmd: "llama-server -m q-Q6_K.gguf -c 8192" }
  long: { cmd: "llama-server -m q-Q6_K.gguf -c 65536" }
`);
    assert.deepEqual(models, [
      { id: "local/q:Q6_K", source: "/swap/q-Q6_K.gguf", ctxSize: 8192, aliases: ["short"] },
      { id: "local/q:long", source: "/swap/q-Q6_K.gguf", ctxSize: 65536, aliases: ["long"] },
    ]);
  });

  for (const [text, expected] of [
    ["models: [", /^config\.yaml:1:\d+: /],
    [
      `models: { a: &a [x, x], ${"b: &b [*a, *a, *a], c: &c [*b, *b, *b], d: &d [*c, *c, *c], e: [*d, *d, *d, *d]"} }`,
      /^config\.yaml cannot be read: Excessive alias count/,
    ],
    ["a: 1", /^config\.yaml is no configuration of llama-swap/],
  ] as const)
    it(`that is ${JSON.stringify(text)} is refused`, () => {
      assert.throws(() => parseSwapConfig("config.yaml", text), { code: "invalid_document", message: expected });
    });
});

describe("a command of llama-swap", () => {
  for (const [cmd, expected] of [
    [
      "/opt/llama-server -m '/a b/x-IQ4_XS.gguf' -ngl 99 --port 1",
      { id: "local/x:IQ4_XS", source: "/a b/x-IQ4_XS.gguf", preset: { "gpu-layers": 99 } },
    ],
    [
      "llama-server.exe -m models/My.Model.gguf -np 2 -n -1",
      { id: "local/My.Model:My.Model", source: "/swap/models/My.Model.gguf", preset: { parallel: 2, predict: -1 } },
    ],
    ["llama-server -hf acme/q -fa off", { id: "acme/q:Q4_K_M", preset: { "flash-attn": "off" } }],
    ["llama-server -hf acme/q:Q8_0 -hff q-UD-Q4_K_XL.gguf", { id: "acme/q:q-UD-Q4_K_XL" }],
    [
      `llama-server -m /c/models--acme--q-GGUF/snapshots/${"a".repeat(40)}/q-Q8_0.gguf --alias q1,q2`,
      { id: "acme/q-GGUF:Q8_0", aliases: ["m", "q1", "q2"] },
    ],
    [
      "llama-server -hf acme/q:Q8_0 --mmproj p.gguf --lora /l1.gguf,/l2.gguf --chat-template-file t.jinja",
      {
        id: "acme/q:Q8_0",
        mmproj: "./acme-q-Q8_0-1-mmproj.gguf",
        lora: [{ source: "./acme-q-Q8_0-2-lora.gguf" }, { source: "./acme-q-Q8_0-3-lora.gguf" }],
        chatTemplate: "./acme-q-Q8_0-4.jinja",
      },
    ],
  ] as const)
    it(cmd, () => {
      const { models, lines } = commandOf(cmd);
      assert.deepEqual(models, [{ aliases: ["m"], ...expected }]);
      assert.deepEqual(lines, []);
    });

  it("with a draft model brings that one too", () => {
    assert.deepEqual(commandOf("llama-server -hf acme/q:Q8_0 -md d-Q8_0.gguf --draft-p-min 0.5").models, [
      { id: "acme/q:Q8_0", aliases: ["m"], draft: "local/d:Q8_0", preset: { "draft-p-min": 0.5 } },
      { id: "local/d:Q8_0", source: "/swap/d-Q8_0.gguf" },
    ]);
  });

  for (const [cmd, line] of [
    [
      "vllm serve x",
      "4: m: is not taken over: it runs vllm, which the gateway does not: it runs llama-server on this machine",
    ],
    ["llama-server --port 1", "4: m: is not taken over: it names no model file by -m or -hf"],
    ["numactl -N 0 llama-server -hf acme/q:Q8_0", "4: m: numactl before llama-server has no counterpart"],
    ["llama-server -hf acme/q:Q8_0\n-c 0", "5: m: -c 0 (the trained size) has no counterpart: set `ctxSize`"],
    [
      "llama-server -hf acme/q:Q8_0\n# --mlock\n--rpc 10.0.0.2:50052",
      "6: m: --rpc has no counterpart: it cannot be set here: use rpc.workers",
    ],
  ] as const)
    it(`${cmd}: a remark`, () =>
      assert.deepEqual(commandOf(cmd).lines, [line.replace("4: m: is not", "3: m: is not")]));
});
