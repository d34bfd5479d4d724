// gateway.yaml with other values: what changed is changed, and nothing else.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { noneAllowed } from "../../../../src/core/preset-keys.ts";
import { type DocumentTree, toInput } from "../../../../src/desired/document/document.ts";
import { editText } from "../../../../src/desired/document/edit-text.ts";
import { parseSource } from "../../../../src/desired/document/parse.ts";
import { validateDocument } from "../../../../src/desired/document/validate.ts";
import { renderDocument } from "../../../../src/desired/render.ts";
import { firstDocument } from "../../../../src/starter/first-document.ts";
import { starterId } from "../../../../src/starter/starter-model.ts";
import { yaml } from "../../../support/documents.ts";

const a = "acme/a:Q8_0";
const b = "acme/b:Q8_0";

/** The lines that differ, as `-old` and `+new`. */
function difference(before: string, after: string): string[] {
  const [from, to] = [before.split("\n"), after.split("\n")];
  return [
    ...from.filter((line) => !to.includes(line)).map((line) => `-${line}`),
    ...to.filter((line) => !from.includes(line)).map((line) => `+${line}`),
  ];
}

function edited(text: string, change: (tree: Record<string, unknown>) => void): string {
  const tree = JSON.parse(JSON.stringify(yaml(text))) as Record<string, unknown>;
  change(tree);
  const result = editText(text, tree as DocumentTree, noneAllowed);
  assert.ok(result !== null);
  assert.deepEqual(yaml(result), tree);
  return result;
}

type Models = Record<string, Record<string, unknown>>;
const modelsIn = (tree: Record<string, unknown>): Models => tree["models"] as Models;

const commented = `# the team's machine
version: 1
context:   # of all models
  default: 8192          # tokens
models:
  # small
  - ${a}                 # the one for tests
  - { id: "${b}", ctxSize: 512, aliases: [one, two] }   # inline

  # last
  - id: 'acme/c:Q8_0'
    ctxSize:   4096   # large
    preset:
      temp: 0.5 # warm
suspend: false

# the end
`;

describe("an edit of the text", () => {
  it("changes the line of the value alone: comments, blanks and quotes stay", () => {
    const after = edited(commented, (tree) => {
      tree["context"] = { default: 4096 };
      (modelsIn(tree)["acme/c:Q8_0"] as Record<string, unknown>)["preset"] = { temp: 0.7 };
    });
    assert.deepEqual(difference(commented, after), [
      "-  default: 8192          # tokens",
      "-      temp: 0.5 # warm",
      "+  default: 4096 # tokens",
      "+      temp: 0.7 # warm",
    ]);
  });

  it("gives a model that is its id alone a field of its own, with its comments", () => {
    const after = edited(commented, (tree) => {
      modelsIn(tree)[a] = { ctxSize: 256 };
    });
    assert.deepEqual(difference(commented, after), [
      `-  - ${a}                 # the one for tests`,
      `+  - id: ${a} # the one for tests`,
      "+    ctxSize: 256",
    ]);
  });

  it("adds and takes out models, fields and parts", () => {
    const after = edited(commented, (tree) => {
      const models = modelsIn(tree);
      delete models[b];
      models["acme/d:Q8_0"] = {};
      models["acme/e:Q8_0"] = { keep: true };
      delete tree["suspend"];
      tree["rpc"] = { workers: ["10.0.0.1:50052"] };
    });
    assert.deepEqual(difference(commented, after), [
      `-  - { id: "${b}", ctxSize: 512, aliases: [one, two] }   # inline`,
      "-suspend: false",
      "+  - acme/d:Q8_0",
      "+  - id: acme/e:Q8_0",
      "+    keep: true",
      "+rpc:",
      "+  workers:",
      "+    - 10.0.0.1:50052",
    ]);
    assert.match(after, /# the end\n/);
  });

  it("keeps every comment of the first document", () => {
    const first = firstDocument("../schemas/gateway.schema.json", () => "model-gateway");
    const after = edited(first, (tree) => {
      tree["context"] = { default: 1024 };
      (modelsIn(tree)[starterId] as Record<string, unknown>)["ctxSize"] = 512;
      modelsIn(tree)[a] = {};
    });
    const comments = (text: string): string[] => text.match(/#.*/g) ?? [];
    assert.deepEqual(comments(after), comments(first));
  });

  it("loses no comment, wherever it stands, while nothing is taken out", () => {
    const parts = [
      "version: 1",
      "context:",
      "  default: 8192",
      "models:",
      `  - ${a}`,
      `  - { id: "${b}", ctxSize: 512, aliases: [one, two] }`,
      "  - id: acme/c:Q8_0",
      "    ctxSize: 4096",
      "    preset:",
      "      temp: 0.5",
      "rpc: { mode: single }",
    ];
    const place = fc.record({ own: fc.boolean(), above: fc.boolean(), blank: fc.boolean() });
    const values = fc.record({ size: fc.integer({ min: 1, max: 99 }), which: fc.integer({ min: 1, max: 63 }) });
    fc.assert(
      fc.property(
        fc.array(place, { minLength: parts.length, maxLength: parts.length }),
        values,
        (places, { size, which }) => {
          const lines = parts.flatMap((line, index) => {
            const { own, above, blank } = places[index] as { own: boolean; above: boolean; blank: boolean };
            const indent = /^ */.exec(line)?.[0] ?? "";
            return [
              ...(blank ? [""] : []),
              ...(above ? [`${indent}# above ${index}`] : []),
              own ? `${line}   # own ${index}` : line,
            ];
          });
          const text = `${lines.join("\n")}\n# the end\n`;
          const after = edited(text, (tree) => {
            const models = modelsIn(tree);
            if (which & 1) tree["context"] = { default: size };
            if (which & 2) models[a] = { ctxSize: size };
            if (which & 4) models[b] = { ctxSize: size, aliases: ["one", "two", "three"] };
            if (which & 8) models["acme/c:Q8_0"] = { ctxSize: size, preset: { temp: 0.5, seed: size }, keep: true };
            if (which & 16) models["acme/d:Q8_0"] = { ctxSize: size };
            if (which & 32) tree["rpc"] = { mode: "single", workers: ["h:1"] };
          });
          const comments = (of: string): string[] => (of.match(/#.*/g) ?? []).toSorted();
          assert.deepEqual(comments(after), comments(text), `${text}\n--\n${after}`);
        },
      ),
      { numRuns: 400 },
    );
  });

  it("takes every way in which a document may be written", () => {
    for (const text of [
      `version: 1\nmodels: [${a}, {id: ${b}}]\n`,
      `{version: 1, models: [${a}, ${b}]}\n`,
      `{"version": 1,\n "models": ["${a}", {"id": "${b}"}]}`,
      `version: 1\nmodels:\n- ${a}\n- id: ${b}\n`,
      `---\nversion: 1\nmodels:\n    - ${a}\n    - id: >-\n        ${b}\n`,
      `version: 1\r\nmodels:\r\n  - ${a} # one\r\n  - ${b}\r\n`,
      `version: 1\n\n\n\nmodels:\n  - ${a}\n\n\n  - ${b}\n`,
      `# only this\nversion: 1\nmodels: &all [${a}, ${b}]`,
    ]) {
      const after = edited(text, (tree) => {
        modelsIn(tree)[a] = { ctxSize: 300, aliases: ["x"] };
        modelsIn(tree)["acme/new:Q8_0"] = { preset: { temp: 1 } };
        tree["prune"] = true;
      });
      assert.equal(after.includes("\r\n"), text.includes("\r\n"));
      assert.equal(after.match(/#.*/)?.[0], text.match(/#.*/)?.[0]);
    }
  });

  it("of a list keeps the items that stay, with their comments", () => {
    const list = `version: 1\nrpc:\n  workers: # office\n    - h:1   # one\n    # below\n    - i:2 # two\n`;
    const set = (workers: string[]) => (tree: Record<string, unknown>) => (tree["rpc"] = { workers });
    assert.deepEqual(difference(list, edited(list, set(["h:1", "i:2", "k:3"]))), ["+    - k:3"]);
    assert.deepEqual(difference(list, edited(list, set(["i:2"]))), ["-    - h:1   # one"]);
    const flow = "version: 1\nrpc:\n  workers: [h:1] # office\n";
    assert.match(edited(flow, set(["h:1", "i:2"])), /workers: \[ h:1, i:2 \] # office\n/);
    assert.match(edited(flow, set([])), /workers: \[\] # office\n/);
  });

  it("empties and fills a list of models, however it is indented", () => {
    for (const indent of ["", "  "])
      for (const above of [" # mine\n", `\n${indent}# mine\n`]) {
        const text = `version: 1\nmodels:${above}${indent}- ${a}\nprune: true\n`;
        const empty = edited(text, (tree) => (tree["models"] = {}));
        const again = edited(empty, (tree) => (tree["models"] = { [a]: {}, [b]: { ctxSize: 1 } }));
        for (const after of [empty, again]) assert.match(after, /# mine\n/);
        assert.match(again, new RegExp(`^ *- ${a}$`, "m"));
      }
  });

  it("takes out all models, and a part", () => {
    edited(`version: 1\nmodels: [${a}]\nrpc: { workers: ["h:1"] }\n`, (tree) => {
      tree["models"] = {};
      delete tree["rpc"];
    });
  });

  it("is none of a text with an alias, which stands for several values", () => {
    const models = `  - { id: ${a}, preset: &fast { temp: 1 } }\n  - { id: ${b}, preset: *fast }\n`;
    const text = `version: 1\nmodels:\n${models}`;
    assert.equal(editText(text, { ...yaml(text), prune: true }, noneAllowed), null);
  });

  it("is none of a text that is no document", () => {
    for (const text of ["version: [", "version: 2\n", "", "a: &x [*x]\n"])
      assert.equal(editText(text, { version: 1 }, noneAllowed), null);
  });

  it("makes any document of any other", () => {
    const model = fc.record(
      {
        ctxSize: fc.integer({ min: 1, max: 9999 }),
        keep: fc.boolean(),
        aliases: fc.uniqueArray(fc.constantFrom("x", "yes", "1e3", "a:b"), { minLength: 1, maxLength: 1 }),
        preset: fc.record(
          { temp: fc.constantFrom(0.5, "1", "on"), seed: fc.integer() },
          { requiredKeys: [], noNullPrototype: true },
        ),
      },
      { requiredKeys: [], noNullPrototype: true },
    );
    const trees = fc
      .record(
        {
          version: fc.constant(1),
          context: fc.record(
            { default: fc.integer({ min: 1, max: 9999 }) },
            { requiredKeys: [], noNullPrototype: true },
          ),
          models: fc.dictionary(fc.constantFrom(a, b, "acme/c:Q8_0", "acme/d.e:F 1"), model, { noNullPrototype: true }),
          prune: fc.boolean(),
          rpc: fc.record(
            { workers: fc.constantFrom<string[][]>([], ["h:1"], ["h:1", "i:2"]) },
            { noNullPrototype: true },
          ),
        },
        { requiredKeys: ["version"], noNullPrototype: true },
      )
      .filter(
        (tree) => validateDocument(toInput(tree as unknown as DocumentTree)).ok,
      ) as unknown as fc.Arbitrary<DocumentTree>;
    fc.assert(
      fc.property(trees, trees, fc.constantFrom("yaml", "json"), (from, to, form) => {
        const text = form === "yaml" ? renderDocument(toInput(from)) : JSON.stringify(toInput(from), null, 2);
        const after = editText(text, to, noneAllowed);
        const parsed = parseSource(after ?? "");
        assert.ok(parsed.ok, after ?? "null");
        assert.deepEqual(parsed.tree, to);
        assert.equal(editText(after ?? "", to, noneAllowed), after);
      }),
      { numRuns: 250 },
    );
  });
});
