// The starter model's file: small, the same on every machine, one successor for each piece of its sentence.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { starterModel, starterSentence } from "../../../src/starter/starter-model.ts";

test("the starter is small, and the same file on every machine", () => {
  const bytes = starterModel();
  assert.ok(bytes.length < 1_000_000);
  // The cache keeps files by their digest: other bytes on another machine would be another model.
  assert.equal(
    createHash("sha256").update(bytes).digest("hex"),
    "4210b182aec58f446352e3c59d2e47a4202bb1ed65f742067eb6381945512cf8",
  );
});

test("no piece of the starter's sentence occurs twice, and each has a dimension", () => {
  const pieces = starterSentence.match(/\S+(?: \S+)?(?: |$)/g) ?? [];
  assert.equal(pieces.join(""), starterSentence);
  assert.equal(new Set(pieces).size, pieces.length);
  assert.ok(pieces.length < 64);
});
