// What a model can do, from what its files say: templates as the families on the hub have them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { capabilitiesOf } from "../../../../src/cache/layout/capabilities.ts";
import { type GgufDetails, isForEmbeddings, parameterSize, poolings } from "../../../../src/core/gguf-facts.ts";

function details(facts: Partial<GgufDetails> = {}): GgufDetails {
  return {
    architecture: "llama",
    values: new Map(),
    templates: new Map(),
    parameterCount: null,
    hasFimTokens: false,
    pooling: null,
    contextLength: null,
    fileType: null,
    embeddingLength: null,
    name: null,
    basename: null,
    sizeLabel: null,
    license: null,
    ...facts,
  };
}

const chatml =
  "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>{% endfor %}";

test("a model without a template talks, and that is all", () => {
  assert.deepEqual(capabilitiesOf(details(), false), ["completion"]);
  assert.deepEqual(capabilitiesOf(details({ template: chatml }), false), ["completion"]);
});

test("tools are those that the template is given, not a word in its texts", () => {
  const withTools = [
    "{%- if tools %}{{- 'You may call' }}{% endif %}",
    "{%- if custom_tools is defined %}{%- set tools = custom_tools %}{%- endif %}",
    "{%- for tool in tools %}{{ tool | tojson }}{% endfor %}",
    "{%- if not tools is none and tools|length > 0 %}x{% endif %}",
    "{{ render(tools, messages) }}",
  ];
  for (const template of withTools)
    assert.deepEqual(capabilitiesOf(details({ template }), false), ["completion", "tools"], template);
  const without = [
    `${chatml} You have no tools.`,
    "{# tools are for later #}",
    "{{ 'Use your tools wisely' }}".replace("tools", "toolset"),
    "{% if message.tools_used %}x{% endif %}",
    "{% if message['tools'] %}x{% endif %}",
  ];
  for (const template of without)
    assert.deepEqual(capabilitiesOf(details({ template }), false), ["completion"], template);
  const named = new Map([["tool_use", "{{ messages }}"]]);
  assert.deepEqual(capabilitiesOf(details({ template: chatml, templates: named }), false), ["completion", "tools"]);
});

test("thinking shows in the markers of each family, and in the switches", () => {
  const templates = [
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>' }}{%- endif %}",
    "{{ '<|Assistant|><think>\\n' }}",
    "{% set content = content.split('</think>')[-1] %}",
    "{{ '[THINK]' + message.text + '[/THINK]' }}",
    "{{- '<|start|>assistant<|channel|>analysis<|message|>' + message.thinking }}",
    "{%- if message.reasoning_content is string %}x{%- endif %}",
    "{%- set effort = reasoning_effort %}",
  ];
  for (const template of templates)
    assert.deepEqual(capabilitiesOf(details({ template }), false), ["completion", "thinking"], template);
  assert.deepEqual(capabilitiesOf(details({ template: "I am thinking of enable_thinking" }), false), ["completion"]);
});

test("pictures need a projector, gaps their tokens; the words come in one order", () => {
  const template = "{% if tools %}{% endif %}<think>";
  assert.deepEqual(capabilitiesOf(details({ template, hasFimTokens: true }), true), [
    "completion",
    "tools",
    "insert",
    "vision",
    "thinking",
  ]);
});

test("a model that pools, or that cannot write, embeds and does nothing else", () => {
  const embeds = (facts: Partial<GgufDetails>) => capabilitiesOf(details({ template: chatml, ...facts }), false);
  assert.deepEqual(embeds({ architecture: "qwen3", pooling: poolings.last }), ["embedding"]);
  assert.deepEqual(embeds({ architecture: "nomic-bert", pooling: poolings.mean }), ["embedding"]);
  assert.deepEqual(embeds({ architecture: "bert" }), ["embedding"]);
  assert.deepEqual(embeds({ architecture: "jina-bert-v2", pooling: poolings.none }), ["embedding"]);
  assert.deepEqual(embeds({ architecture: "qwen3", pooling: poolings.none }), ["completion"]);
  assert.deepEqual(embeds({ architecture: "bert", pooling: poolings.rank }), []);
  assert.equal(isForEmbeddings(null, null), false);
});

test("a number of weights as model lists show it", () => {
  const sizes: readonly (readonly [number, string])[] = [
    [0, "0"],
    [999, "999"],
    [104_640, "105K"],
    [22_565_376, "22.6M"],
    [268_098_176, "268M"],
    [999_600_000, "1.0B"],
    [1_235_814_432, "1.2B"],
    [7_615_616_512, "7.6B"],
    [70_553_706_496, "70.6B"],
    [99_960_000_000, "100B"],
    [671_026_419_200, "671B"],
    [1_026_408_232_448, "1.0T"],
  ];
  for (const [count, size] of sizes) assert.equal(parameterSize(count), size);
});
