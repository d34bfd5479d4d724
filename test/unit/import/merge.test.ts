// Imported models beside those that a document has.
import assert from "node:assert/strict";
import { it } from "node:test";
import { merge } from "../../../src/import/merge.ts";

const document = {
  version: 1,
  prune: true,
  models: {
    "acme/a:Q8_0": { aliases: ["Llama3.2"] },
    "acme/b:Q8_0": { ctxSize: 512, variants: [{ name: "terse", set: {} }] },
  },
};

it("adds models, and changes nothing of what is there", () => {
  const { tree, added, remarks } = merge(document, [
    { id: "acme/B:q8_0", ctxSize: 4096 },
    {
      id: "ollama/c:Q4_K_M",
      source: "/c",
      aliases: ["llama3.2:latest", "c", "C:latest"],
      variants: [{ name: "Terse", set: { seed: 1 } }],
    },
    { id: "ollama/d:Q4_K_M", aliases: ["ollama/c:Q4_K_M", "c"], variants: [{ name: "d-1", set: { seed: 1 } }] },
  ]);
  assert.deepEqual(tree, {
    ...document,
    models: {
      ...document.models,
      "ollama/c:Q4_K_M": { source: "/c", aliases: ["c"] },
      "ollama/d:Q4_K_M": { variants: [{ name: "d-1", set: { seed: 1 } }] },
    },
  });
  assert.deepEqual(added, ["ollama/c:Q4_K_M", "ollama/d:Q4_K_M"]);
  assert.deepEqual(
    remarks.map(({ about, message }) => `${about} ${message}`),
    [
      "acme/B:q8_0 is in the document already and stays as it is",
      "ollama/c:Q4_K_M does not get the name llama3.2:latest: another model has it",
      "ollama/c:Q4_K_M does not get the name C:latest: another model has it",
      "ollama/c:Q4_K_M does not get the name Terse: another model has it",
      "ollama/d:Q4_K_M does not get the name ollama/c:Q4_K_M: another model has it",
      "ollama/d:Q4_K_M does not get the name c: another model has it",
    ],
  );
});
