// The documents that people start from are valid, and the schema that their editors read is the current one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv } from "ajv";
import { documentSchema } from "../../schemas/document.ts";
import { toDesired } from "../../src/desired/document/document.ts";
import { parseSource } from "../../src/desired/document/parse.ts";
import { firstDocument } from "../../src/starter/first-document.ts";
import { starterFileName, starterId } from "../../src/starter/starter-model.ts";
import { codeBlocks } from "../support/doc-pages.ts";
import { readProjectFile } from "../support/project-files.ts";

const command = (...words: readonly string[]): string => ["model-gateway", ...words].join(" ");

test("gateway.schema.json is the schema in force", () => {
  assert.deepEqual(JSON.parse(readProjectFile("schemas/gateway.schema.json")), documentSchema);
});

test("the schema is one by the meta-schema", () => {
  const ajv = new Ajv();
  assert.ok(ajv.validateSchema(documentSchema), ajv.errorsText());
});

test("the first document is valid and wants the starter model", () => {
  const parsed = parseSource(firstDocument("../schemas/gateway.schema.json", command));
  assert.ok(parsed.ok);
  assert.deepEqual(toDesired(parsed.tree).models, [{ id: starterId, source: `./${starterFileName}` }]);
});

test("the first document is still valid with its suggestions taken up", () => {
  const text = firstDocument("../schemas/gateway.schema.json", command);
  const taken = text.replace(/^( *)# (context:| {2}default|- |  ctxSize|  preset|  keep|prune|suspend)/gm, "$1$2");
  const parsed = parseSource(taken);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  const desired = toDesired(parsed.tree);
  assert.equal(desired.models.length, 3);
  assert.equal(desired.models[2]?.keep, true);
  assert.equal(desired.context.default, 8192);
  assert.ok(desired.prune && desired.suspend);
});

test("the examples in the docs are valid, and docs/document.md shows every key", () => {
  const examples = codeBlocks("yaml");
  assert.ok(examples.length >= 4);
  for (const { page, code } of examples) {
    const parsed = parseSource(code.includes("version:") ? code : `version: 1\n${code}`);
    assert.ok(parsed.ok, `${page}: ${JSON.stringify(parsed)}`);
    if (page === "docs/document.md")
      assert.deepEqual(Object.keys(parsed.tree).toSorted(), Object.keys(documentSchema.properties).toSorted());
  }
});
