// Variants of a model, and its scheduling, in gateway.yaml: what is refused, and where.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSource, type SourceProblem } from "../../../../src/desired/document/parse.ts";

const at = (line: number, column: number, path: string, message: string): SourceProblem => ({
  line,
  column,
  path,
  message,
});

const wrong: readonly (readonly [why: string, text: string, problems: readonly SourceProblem[]])[] = [
  [
    "a variant that has the name of something else",
    "version: 1\nmodels:\n  - id: a/b:c\n    aliases: [x]\n    variants:\n      - { name: X.gguf, set: {} }\n      - { name: A/b:C, set: {} }\n      - { name: v, set: {} }\n  - id: a/d:e\n    aliases: [v]\n",
    [
      at(6, 17, "models[0].variants[0].name", "X.gguf is already a name of the model at index 0"),
      at(7, 17, "models[0].variants[1].name", "A/b:C is the id of the model at index 0"),
      at(10, 15, "models[1].aliases[0]", "v is already a name of the model at index 0"),
    ],
  ],
  [
    "what is no time, no count and no priority",
    "version: 1\nmodels:\n  - id: a/b:c\n    keepAlive: soon\n    maxQueue: 0\n    priority: 11\n  - id: a/d:e\n    keepAlive: 1.2.3\n    keepAliv: 5\n",
    [
      at(4, 16, "models[0].keepAlive", "must be seconds, a duration such as 5m, 0, or -1 for ever"),
      at(5, 15, "models[0].maxQueue", "must be >= 1"),
      at(6, 15, "models[0].priority", "must be <= 10"),
      at(8, 16, "models[1].keepAlive", "must be seconds, a duration such as 5m, 0, or -1 for ever"),
      at(9, 5, "models[1].keepAliv", "unknown key (did you mean keepAlive?)"),
    ],
  ],
  [
    "a variant's slips",
    "version: 1\nmodels:\n  - id: a/b:c\n    variants:\n      - { name: v, sett: {} }\n      - name: w\n        set: { temprature: 1, top_p: high, model: x, num_ctx: 9, min_tokens_of_ours: 1 }\n        force: [top_p, top_k]\n",
    [
      at(5, 9, "models[0].variants[0]", "set is missing"),
      at(5, 20, "models[0].variants[0].sett", "unknown key (did you mean set?)"),
      at(7, 16, "models[0].variants[1].set.temprature", "no member of a request (did you mean temperature?)"),
      at(7, 38, "models[0].variants[1].set.top_p", "must be number"),
      at(
        7,
        44,
        "models[0].variants[1].set.model",
        "not a member that a variant sets: the variant's name stands for it",
      ),
      at(
        7,
        54,
        "models[0].variants[1].set.num_ctx",
        "not a member that a variant sets: variants share the process of their model: set ctxSize of the model",
      ),
      at(
        8,
        24,
        "models[0].variants[1].force[1]",
        "set has no member top_k; it has temprature, top_p, model, num_ctx, min_tokens_of_ours",
      ),
    ],
  ],
];

for (const [why, text, problems] of wrong) {
  test(`wrong: ${why}`, () => {
    const parsed = parseSource(text);
    assert.ok(!parsed.ok);
    assert.deepEqual(parsed.problems, problems);
  });
}

test("what is taken: settings of every shape, unknown members, times as text and number", () => {
  const parsed = parseSource(`version: 1
models:
  - id: a/b:c
    keepAlive: -1
    variants:
      - { name: v, set: {} }
      - name: w:2
        set: { temperature: 0.2, stop: [a, b], lora: [{ id: 0, scale: 0.5 }], quite_unlike_any: null }
        force: [stop]
  - { id: a/d:e, keepAlive: 1h30m, maxQueue: 3, priority: -10 }
`);
  assert.ok(parsed.ok);
  const models = parsed.tree["models"] as Record<string, { variants?: object[]; keepAlive?: unknown }>;
  assert.deepEqual(models["a/b:c"]?.variants, [
    { name: "v", set: {} },
    {
      name: "w:2",
      set: { temperature: 0.2, stop: ["a", "b"], lora: [{ id: 0, scale: 0.5 }], quite_unlike_any: null },
      force: ["stop"],
    },
  ]);
});
