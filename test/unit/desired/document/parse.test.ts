// gateway.yaml's text: what it means, and everything that is wrong with it at once, with line, column and path.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toDesired } from "../../../../src/desired/document/document.ts";
import { parseSource, type SourceProblem } from "../../../../src/desired/document/parse.ts";
import { formatPath } from "../../../../src/desired/document/problem.ts";
import { validateDocument } from "../../../../src/desired/document/validate.ts";

const whole = `# yaml-language-server: $schema=../schemas/gateway.schema.json
version: 1
context:
  default: 8192 # common
models:
  - ggml-org/gemma-3-270m-it-GGUF:Q8_0 # short form
  - local/starter-GGUF:Q8_0
  - id: bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M
    ctxSize: 16384
    preset: { flash-attn: on, parallel: 2, no-mmap: true }
    keep: true
  - "acme/a:model with blanks"
prune: false
suspend: no-such-thing
rpc: { mode: single, workers: [] }
`.replace("suspend: no-such-thing\n", "");

test("a whole document", () => {
  const parsed = parseSource(whole);
  assert.ok(parsed.ok);
  const { models, context } = toDesired(parsed.tree);
  assert.equal(context.default, 8192);
  assert.deepEqual(models, [
    { id: "ggml-org/gemma-3-270m-it-GGUF:Q8_0" },
    { id: "local/starter-GGUF:Q8_0" },
    {
      id: "bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M",
      ctxSize: 16384,
      preset: { "flash-attn": "on", parallel: 2, "no-mmap": true },
      keep: true,
    },
    { id: "acme/a:model with blanks" },
  ]);
});

test("lines may end as on Windows, and the file may begin with a byte order mark", () => {
  assert.ok(parseSource(whole.replaceAll("\n", "\r\n")).ok);
  assert.ok(parseSource(`\uFEFF${whole}`).ok);
});

const at = (line: number, column: number, path: string, message: string): SourceProblem => ({
  line,
  column,
  path,
  message,
});
const noId = "is not of the form OWNER/NAME:TAG (at most 246 and 235 characters)";
const notOnTheList = (key: string): string =>
  `preset key ${key} is not on the list of options that a document may set (start the gateway with --preset-allow ${key} to add it)`;

const notLong = "not the long form of a llama-server option, without dashes";
const unknownOfModel =
  "unknown key (known: id, ctxSize, aliases, variants, preset, chatTemplate, lora, draft, mmproj, keep, pinned, keepAlive, maxQueue, priority, source, revision)";

const wrong: readonly (readonly [why: string, text: string, problems: readonly SourceProblem[]])[] = [
  ["an unknown key", "version: 1\nmodls: []\n", [at(2, 1, "modls", "unknown key (did you mean models?)")]],
  [
    "an unknown key of a model",
    "version: 1\nmodels:\n  - id: a/b:c\n    ctx: 5\n",
    [at(4, 5, "models[0].ctx", unknownOfModel)],
  ],
  [
    "a key in other letters, and an option's",
    "version: 1\nmodels:\n  - id: a/b:c\n    ctx-size: 5\n    preset: { flash-atn: on, nGpuLayers: 4 }\n",
    [
      at(4, 5, "models[0].ctx-size", "unknown key (did you mean ctxSize?)"),
      at(5, 15, "models[0].preset.flash-atn", `${notOnTheList("flash-atn")} (did you mean flash-attn?)`),
      at(5, 30, "models[0].preset.nGpuLayers", `${notLong} (did you mean n-gpu-layers?)`),
    ],
  ],
  ["the version is missing", "models: []\n", [at(1, 1, "", "version is missing")]],
  ["another version", "version: 2\n", [at(1, 10, "version", "must be 1")]],
  ["a model without an id", "version: 1\nmodels:\n  - ctxSize: 5\n", [at(3, 5, "models[0]", "id is missing")]],
  ["a wrong type", "version: 1\nprune: maybe\n", [at(2, 8, "prune", "must be boolean")]],
  [
    "a size that is no number",
    'version: 1\nmodels:\n  - id: a/b:c\n    ctxSize: "5"\n',
    [at(4, 14, "models[0].ctxSize", '"5" is not of the form 8192 or auto')],
  ],
  ["a size below one", "version: 1\ncontext: { default: 0 }\n", [at(2, 21, "context.default", "must be >= 1")]],
  [
    "a size that is infinite",
    "version: 1\ncontext: { default: .inf }\n",
    [at(2, 21, "context.default", "must be integer")],
  ],
  ["no list of models", "version: 1\nmodels: a/b:c\n", [at(2, 9, "models", "must be array")]],
  ["an empty list, commented out", "version: 1\nmodels:\n#  - a/b:c\n", [at(2, 8, "models", "must be array")]],
  [
    "a model that is a number",
    "version: 1\nmodels:\n  - 5\n",
    [at(3, 5, "models[0]", "must be OWNER/NAME:TAG or an object with an id")],
  ],
  [
    "a model that is a list",
    "version: 1\nmodels:\n  - [a/b:c]\n",
    [at(3, 5, "models[0]", "must be OWNER/NAME:TAG or an object with an id")],
  ],
  [
    "a model that is nothing",
    "version: 1\nmodels:\n  -\n",
    [at(3, 4, "models[0]", "must be OWNER/NAME:TAG or an object with an id")],
  ],
  ["a bad id", "version: 1\nmodels:\n  - llama3\n", [at(3, 5, "models[0]", `"llama3" ${noId}`)]],
  [
    "a bad id in the long form",
    "version: 1\nmodels:\n  - { id: a/b, keep: true }\n",
    [at(3, 11, "models[0].id", `"a/b" ${noId}`)],
  ],
  [
    "an id that leaves the cache",
    "version: 1\nmodels: [a../b:c, a/b--c:d]\n",
    [at(2, 10, "models[0]", `"a../b:c" ${noId}`), at(2, 19, "models[1]", `"a/b--c:d" ${noId}`)],
  ],
  [
    "an id twice, ignoring case",
    "version: 1\nmodels:\n  - A/b:Q8_0\n  - id: a/B:q8_0\n",
    [at(4, 5, "models[1]", "a/B:q8_0 is already the model at index 0")],
  ],
  [
    "a revision that is none",
    'version: 1\nmodels: [{ id: a/b:c, revision: "-x" }]\n',
    [at(2, 33, "models[0].revision", '"-x" is not of the form a branch, tag or commit')],
  ],
  [
    "an empty source",
    'version: 1\nmodels: [{ id: a/b:c, source: "" }]\n',
    [at(2, 31, "models[0].source", "must NOT have fewer than 1 characters")],
  ],
  [
    "a preset key with dashes in front",
    "version: 1\nmodels:\n  - id: a/b:c\n    preset: { --threads: 2 }\n",
    [at(4, 15, "models[0].preset.--threads", `${notLong} (did you mean threads?)`)],
  ],
  [
    "a preset key that is the router's",
    "version: 1\nmodels:\n  - id: a/b:c\n    preset: { port: 2 }\n",
    [at(4, 15, "models[0].preset.port", "preset key port cannot be set here: the router owns it")],
  ],
  [
    "a preset key that is on no list",
    "version: 1\nmodels:\n  - id: a/b:c\n    preset: { log-prompts-dir: /tmp }\n",
    [at(4, 15, "models[0].preset.log-prompts-dir", notOnTheList("log-prompts-dir"))],
  ],
  [
    "a preset value that would be cut",
    'version: 1\nmodels:\n  - id: a/b:c\n    preset: { threads: "2 # two" }\n',
    [at(4, 24, "models[0].preset.threads", "preset value of threads has a character that the preset file cannot hold")],
  ],
  [
    "a preset value that is nothing",
    "version: 1\nmodels:\n  - id: a/b:c\n    preset: { threads: }\n",
    [at(4, 24, "models[0].preset.threads", "must be string or number or boolean")],
  ],
  ["a mode that is none", "version: 1\nrpc: { mode: both }\n", [at(2, 14, "rpc.mode", "must be one of single, rpc")]],
  [
    "a worker without a port",
    "version: 1\nrpc: { workers: [localhost] }\n",
    [at(2, 18, "rpc.workers[0]", `"localhost" is not of the form HOST:PORT, with an IPv4 address or a host's name`)],
  ],
  [
    "a worker's port out of range",
    'version: 1\nrpc: { workers: ["h:1", "h:70000", "h:0"] }\n',
    [
      at(2, 25, "rpc.workers[1]", `"h:70000" is not of the form HOST:PORT, with an IPv4 address or a host's name`),
      at(2, 36, "rpc.workers[2]", `"h:0" is not of the form HOST:PORT, with an IPv4 address or a host's name`),
    ],
  ],
  [
    "a worker twice",
    'version: 1\nrpc: { workers: ["h:1", "h:1"] }\n',
    [at(2, 17, "rpc.workers", "must NOT have duplicate items (items ## 1 and 0 are identical)")],
  ],
  [
    "a transcription model and a voice that are none",
    "version: 1\nspeech:\n  transcription: { model: ../x.bin }\n  synthesis: { voice: ../../etc/passwd }\n",
    [
      at(3, 27, "speech.transcription.model", '"../x.bin" is not of the form ggml-NAME.bin or NAME'),
      at(
        4,
        23,
        "speech.synthesis.voice",
        '"../../etc/passwd" is not of the form a voice\'s id, such as en_US-lessac-medium',
      ),
    ],
  ],
  [
    "what fits the form and is still none",
    "version: 1\nspeech:\n  transcription: { model: silero-v5 }\n  synthesis: { voice: '-x' }\n  start: soon\n",
    [
      at(3, 27, "speech.transcription.model", '"silero-v5" is no transcription model: ggml-NAME.bin'),
      at(4, 23, "speech.synthesis.voice", '"-x" is no voice\'s id'),
      at(5, 10, "speech.start", "must be one of lazy, now"),
    ],
  ],
  [
    "speech without a model",
    "version: 1\nspeech: { transcription: {} }\n",
    [at(2, 26, "speech.transcription", "model is missing")],
  ],
  ["an empty file", "", [at(1, 1, "", "the file is empty")]],
  ["nothing but comments", "# one\n# two\n", [at(1, 1, "", "the file is empty")]],
  ["a file that is a text", "hello\n", [at(1, 1, "", "must be object")]],
  ["a file that is a list", "- a/b:c\n", [at(1, 1, "", "must be object")]],
  ["a key twice", "version: 1\nprune: true\nprune: false\n", [at(3, 1, "", "Map keys must be unique")]],
  [
    "two documents",
    "version: 1\n---\nversion: 1\n",
    [at(2, 1, "", "more than one document: remove this line and what follows")],
  ],
  [
    "everything at once, whatever kind it is of",
    "version: 1\nmodls: 1\nprune: 5\nmodels:\n  - A/b:c\n  - a/b:c\n  - bad\n  - id: a/d:e\n    preset: { port: 1, xy: [] }\nrpc:\n  workers: ['h:0', 5]\n",
    [
      at(2, 1, "modls", "unknown key (did you mean models?)"),
      at(3, 8, "prune", "must be boolean"),
      at(6, 5, "models[1]", "a/b:c is already the model at index 0"),
      at(7, 5, "models[2]", `"bad" ${noId}`),
      at(9, 15, "models[3].preset.port", "preset key port cannot be set here: the router owns it"),
      at(9, 24, "models[3].preset.xy", notOnTheList("xy")),
      at(9, 28, "models[3].preset.xy", "must be string or number or boolean"),
      at(11, 13, "rpc.workers[0]", `"h:0" is not of the form HOST:PORT, with an IPv4 address or a host's name`),
      at(11, 20, "rpc.workers[1]", "must be string"),
    ],
  ],
  [
    "a name that two models have, or that is another's id; one model may be called by its own",
    "version: 1\nmodels:\n  - id: a/b:c\n    aliases: [x, a/b:c, A/d:e]\n  - id: a/d:e\n    aliases: ['X:latest', y, y.gguf]\n",
    [
      at(4, 25, "models[0].aliases[2]", "A/d:e is the id of the model at index 1"),
      at(6, 15, "models[1].aliases[0]", "X:latest is already a name of the model at index 0"),
      at(6, 30, "models[1].aliases[2]", "y.gguf is already a name of the model at index 1"),
    ],
  ],
  [
    "a name that no client could send",
    "version: 1\nmodels:\n  - id: a/b:c\n    aliases: ['two words', '']\n",
    [
      at(4, 15, "models[0].aliases[0]", '"two words" is not of the form a name of letters, digits and _ . / : + @ -'),
      at(4, 28, "models[0].aliases[1]", '"" is not of the form a name of letters, digits and _ . / : + @ -'),
    ],
  ],
];

for (const [why, text, problems] of wrong) {
  test(`wrong: ${why}`, () => {
    const parsed = parseSource(text);
    assert.ok(!parsed.ok);
    const found = parsed.problems.toSorted(
      (a, b) => a.line - b.line || a.column - b.column || (a.message < b.message ? -1 : 1),
    );
    assert.deepEqual(found, problems);
  });
}

test("a syntax error has its place", () => {
  const parsed = parseSource("version: 1\nmodels:\n  - a/b:c\n - d/e:f\n");
  assert.ok(!parsed.ok);
  assert.equal(parsed.problems[0]?.line, 4);
  const open = parseSource('version: 1\nmodels: ["a/b:c\n');
  assert.ok(!open.ok && open.problems.length > 0);
});

test("keys named like properties of every object are unknown keys", () => {
  for (const key of ["__proto__", "constructor", "toString"]) {
    const parsed = parseSource(`version: 1\n${key}: 1\n`);
    assert.ok(!parsed.ok, key);
    assert.equal(parsed.problems[0]?.line, 2);
    assert.match(parsed.problems[0]?.message ?? "", /^unknown key \(known: version, /);
  }
});

test("no value of any shape is neither taken nor found wrong", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (models, rpc) => {
      for (const value of [
        models,
        { version: 1, models },
        { version: 1, models: [models, rpc] },
        { version: 1, rpc },
        { version: 1, models: [{ id: models, preset: rpc }] },
      ]) {
        const validation = validateDocument(value);
        assert.ok(validation.ok || validation.problems.length > 0, JSON.stringify(value));
      }
    }),
    { seed: 5, numRuns: 500 },
  );
});

test("no text makes the reader throw", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
      const parsed = parseSource(text);
      assert.ok(parsed.ok || parsed.problems.every(({ line, column }) => line >= 1 && column >= 1));
    }),
    { seed: 6, numRuns: 500 },
  );
});

test("a path as a person would write it", () => {
  assert.equal(formatPath(["models", 2, "preset", "flash-attn"]), "models[2].preset.flash-attn");
  assert.equal(formatPath([]), "");
});
