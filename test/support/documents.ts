// Documents for tests of their store: what a file says, what a call changes, and a removal that is noted in one.
import assert from "node:assert/strict";
import type { DocumentTree, Removal } from "../../src/desired/document/document.ts";
import { parseSource } from "../../src/desired/document/parse.ts";

export function yaml(text: string): DocumentTree {
  const parsed = parseSource(text);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.tree;
}

export function patch(models: object): { kind: "patch"; patch: unknown } {
  return { kind: "patch", patch: { models } };
}

export const removal: Removal = {
  id: "acme/a:Q8_0",
  repo: "acme/a",
  names: ["acme/a:Q8_0", "acme/a:a-Q8_0"],
  commit: "a".repeat(40),
  files: ["a-Q8_0.gguf"],
  projector: null,
  presetSection: true,
  blobs: [],
  requestedAt: "2026-01-02T03:04:05.000Z",
  by: "api",
};
