// What the files and the draft model beside a model become in its section, and what is left out and told.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DocumentFile } from "../../../src/plan/observed.ts";
import { plan } from "../../../src/plan/plan.ts";
import { effectiveValues, parsePreset } from "../../../src/plan/preset-file.ts";
import { wantedSections } from "../../../src/plan/wanted-preset.ts";
import { cacheOf, desiredFrom, known, knownOptions, world, worldFile } from "./world.ts";

const id = "acme/a:Q8_0";
const draft = "acme/d:Q8_0";
const fit = (path: string, rest: object = {}): DocumentFile => ({
  state: "fit",
  path,
  identity: "i1",
  isGguf: true,
  ...rest,
});

interface Found {
  readonly values: Record<string, string>;
  readonly problem: string | undefined;
}

/** The keys of the model's section but its source, and what is told of it. */
function section(
  fields: object,
  files: Readonly<Record<string, DocumentFile>> = {},
  options: { readonly cached?: readonly string[]; readonly others?: readonly string[]; readonly knows?: string } = {},
): Found {
  const { cached = ["acme/a/a-Q8_0.gguf", "acme/d/d-Q8_0.gguf"], others = [draft], knows } = options;
  const desired = desiredFrom({ models: [{ id, ...fields }, ...others] });
  const { models } = cacheOf(cached.map(worldFile));
  const findings = new Map<string, string>();
  const known = knows === undefined ? null : new Set(knows.split(" "));
  const sections = wantedSections(
    desired,
    models,
    [],
    { knownOptions: known },
    findings,
    new Map(Object.entries(files)),
  );
  const { "hf-repo": _source, ...values } = Object.fromEntries(sections.find(({ name }) => name === id)?.values ?? []);
  return { values, problem: findings.get(id) };
}

test("each field becomes the engine's option, and the files' identities a tag", () => {
  const files = {
    "./a.jinja": fit("/doc/a.jinja", { isGguf: false, identity: "t" }),
    "x.gguf": fit("/doc/x.gguf", { identity: "x" }),
    "y.gguf": fit("/doc/y.gguf", { identity: "y" }),
    "p.gguf": fit("/doc/p.gguf", { identity: "p" }),
  };
  assert.deepEqual(section({ chatTemplate: "./a.jinja" }, files), {
    values: { "chat-template-file": "/doc/a.jinja", tags: "files-t" },
    problem: undefined,
  });
  const lora = [{ source: "x.gguf" }, { source: "y.gguf", scale: -0.5 }];
  assert.deepEqual(section({ lora }, files).values, {
    "lora-scaled": "/doc/x.gguf:1,/doc/y.gguf:-0.5",
    tags: "files-x.y",
  });
  assert.deepEqual(section({ mmproj: "p.gguf" }, files).values, { mmproj: "/doc/p.gguf", tags: "files-p" });
  const { values } = section({ draft });
  assert.match(values["model-draft"] ?? "", /models--acme--d\/snapshots\/.*\/d-Q8_0\.gguf$/);
  assert.deepEqual([values["spec-type"], values["tags"]], ["draft-simple", "files-blob-d-Q8_0."]);
  const own = section({ draft, preset: { "spec-type": "ngram-mod" } }).values;
  assert.equal(own["spec-type"], "ngram-mod", "a person's own type wins");
});

test("the document's projector goes before the one beside a model that the router does not list", () => {
  const options = { cached: ["acme/a/tiny.gguf", "acme/a/mmproj-F16.gguf"], others: [] };
  const desired = desiredFrom({ models: [{ id: "acme/a:tiny", mmproj: "p.gguf" }] });
  const { models } = cacheOf(options.cached.map(worldFile));
  const files = new Map([["p.gguf", fit("/doc/p.gguf")]]);
  const [, found] = wantedSections(desired, models, [], { knownOptions: null }, new Map(), files);
  assert.equal(found?.values.get("mmproj"), "/doc/p.gguf");
  assert.match(found?.values.get("model") ?? "", /tiny\.gguf$/);
});

for (const [why, fields, files, problem] of [
  [
    "a file that is missing",
    { chatTemplate: "a.jinja" },
    { "a.jinja": { state: "unfit", why: "a.jinja does not exist" } },
    "chatTemplate is left out: a.jinja does not exist",
  ],
  [
    "one of two adapters",
    { lora: [{ source: "x" }, { source: "y" }] },
    { x: fit("/x"), y: fit("/y", { isGguf: false }) },
    "lora is left out: y is not a GGUF file",
  ],
  [
    "a projector that is none",
    { mmproj: "p" },
    { p: fit("/p", { isGguf: false }) },
    "mmproj is left out: p is not a GGUF file",
  ],
  [
    "a path that the preset file would cut",
    { mmproj: "p" },
    { p: fit("/c#/p") },
    "mmproj is left out: the engine cannot take the path of p",
  ],
  [
    "an adapter's path with a comma",
    { lora: [{ source: "x" }] },
    { x: fit("/a,b/x") },
    "lora is left out: the engine cannot take the path of x",
  ],
  ["a file that has not been observed", { mmproj: "p" }, {}, "mmproj is left out: p has not been read yet"],
  [
    "a draft that the document does not declare",
    { draft: "acme/other:Q8_0" },
    {},
    "draft is left out: acme/other:Q8_0 is not another model of the document",
  ],
  [
    "a draft of itself",
    { draft: id.toUpperCase() },
    {},
    `draft is left out: ${id.toUpperCase()} is not another model of the document`,
  ],
] as const) {
  test(`left out and told: ${why}`, () => {
    const found = section(fields, files);
    assert.equal(found.problem, problem);
    for (const key of ["chat-template-file", "lora-scaled", "mmproj", "model-draft", "spec-type"])
      assert.equal(found.values[key], undefined, key);
  });
}

test("a draft that is still being pulled is left out until it is here", () => {
  const found = section({ draft }, {}, { cached: ["acme/a/a-Q8_0.gguf"] });
  assert.deepEqual(found, { values: {}, problem: `draft is left out: ${draft} is not in the model cache yet` });
});

test("an engine that does not know the option gets none, and one without tags is not given any", () => {
  const files = { "p.gguf": fit("/doc/p.gguf") };
  assert.deepEqual(section({ mmproj: "p.gguf" }, files, { knows: "hf-repo ctx-size mmproj" }).values, {
    mmproj: "/doc/p.gguf",
  });
  const old = section({ mmproj: "p.gguf", ctxSize: 512 }, files, { knows: "hf-repo ctx-size" });
  assert.match(old.problem ?? "", /the engine has no option mmproj/);
});

test("another content is another section, and a reload that ends the model", () => {
  const desired = desiredFrom({ models: [{ id, mmproj: "p.gguf" }] });
  const options = new Set([...knownOptions, "tags"]);
  const base = world(desired, { files: ["acme/a/a-Q8_0.gguf"], router: { loaded: [id], knownOptions: options } });
  const context = { now: 0, backoff: new Map(), silenceLimitMs: 1 };
  const withFile = (identity: string, text?: string): ReturnType<typeof plan> =>
    plan(
      desired,
      {
        ...base,
        documentFiles: new Map([["p.gguf", fit("/doc/p.gguf", { identity })]]),
        ...(text === undefined ? {} : { preset: known(parsePreset(text)) }),
      },
      context,
    );
  const [first] = withFile("one").actions;
  assert.ok(first?.kind === "preset.write");
  assert.equal(effectiveValues(parsePreset(first.text), id).get("tags"), "files-one");
  const [second] = withFile("two", first.text).actions;
  assert.ok(second?.kind === "preset.write");
  assert.deepEqual(
    withFile("two", second.text).actions.map(({ kind, disrupts }) => [kind, disrupts]),
    [["router.reload", [id]]],
  );
});
