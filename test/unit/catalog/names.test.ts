// What a name that is no id means, as the cache and the document change under it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCatalog } from "../../../src/catalog/catalog.ts";
import type { Pass } from "../../../src/reconcile/loop.ts";
import { desiredFrom, known, world } from "../plan/world.ts";

interface Scene {
  /** A pass finds these files, by this document. */
  readonly show: (files: readonly string[], document?: object) => void;
  /** The id that a name means; undefined: none. */
  readonly meaning: (name: string) => string | undefined;
}

function createScene(): Scene {
  let [pass, desired] = [null as Pass | null, desiredFrom({})];
  const catalog = createCatalog(
    () => pass,
    { models: () => known([]) } as never,
    () => null,
    () => desired,
    { known: () => null },
  );
  return {
    show: (files, document = {}) => {
      desired = desiredFrom(document);
      pass = { desired: { document: desired }, observed: world(desired, { files }) } as unknown as Pass;
    },
    meaning: (name) => catalog.find(name)?.id,
  };
}

test("a short name means its one model until the cache has a second, and again after that", () => {
  const { show, meaning } = createScene();
  const [own, other] = ["acme/alpha-GGUF/alpha-Q8_0.gguf", "other/alpha-GGUF/alpha-Q8_0.gguf"];
  show([own]);
  assert.equal(meaning("alpha-GGUF"), "acme/alpha-GGUF:Q8_0");
  assert.equal(meaning("alpha-GGUF"), "acme/alpha-GGUF:Q8_0");
  show([own, other]);
  assert.equal(meaning("alpha-GGUF"), undefined);
  show([other]);
  assert.equal(meaning("alpha-GGUF"), "other/alpha-GGUF:Q8_0");
});

test("an alias that moves to another model means that one at once", () => {
  const { show, meaning } = createScene();
  const [alpha, beta] = ["acme/alpha:Q8_0", "acme/beta:Q8_0"];
  const files = ["acme/alpha/alpha-Q8_0.gguf", "acme/beta/beta-Q8_0.gguf"];
  show(files, { models: [{ id: alpha, aliases: ["mine"] }, beta] });
  assert.equal(meaning("mine:latest"), alpha);
  assert.equal(meaning("MINE"), alpha);
  show(files, { models: [alpha, { id: beta, aliases: ["mine"] }] });
  assert.equal(meaning("mine:latest"), beta);
  assert.equal(meaning("MINE"), beta);
});
