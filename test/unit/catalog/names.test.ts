// What a name that is no id means, as the cache and the document change under it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCatalog } from "../../../src/catalog/catalog.ts";
import type { Pass } from "../../../src/reconcile/loop.ts";
import { desiredFrom, known, restingRouter, world } from "../plan/world.ts";

interface Scene {
  files: readonly string[];
  document: object;
}

/** Names that are looked up again and again while `scene` changes. */
function lookingUp(scene: Scene): (name: string) => string | undefined {
  let last = "";
  let [pass, desired] = [null as Pass | null, desiredFrom({})];
  const look = (): void => {
    const now = JSON.stringify(scene);
    if (now === last) return;
    last = now;
    desired = desiredFrom(scene.document);
    const observed = world(desired, { files: scene.files });
    pass = { desired: { document: desired }, observed } as unknown as Pass;
  };
  const router = { models: () => known([]), snapshot: () => restingRouter };
  const memory = { known: () => null };
  const catalog = createCatalog(
    () => pass,
    router as never,
    () => null,
    () => desired,
    memory,
  );
  return (name) => {
    look();
    return catalog.find(name)?.id;
  };
}

test("a short name means its one model until the cache has a second, and again after that", () => {
  const scene: Scene = { files: ["acme/alpha-GGUF/alpha-Q8_0.gguf"], document: {} };
  const meaning = lookingUp(scene);
  assert.equal(meaning("alpha-GGUF"), "acme/alpha-GGUF:Q8_0");
  assert.equal(meaning("alpha-GGUF"), "acme/alpha-GGUF:Q8_0");
  scene.files = [...scene.files, "other/alpha-GGUF/alpha-Q8_0.gguf"];
  assert.equal(meaning("alpha-GGUF"), undefined);
  scene.files = ["other/alpha-GGUF/alpha-Q8_0.gguf"];
  assert.equal(meaning("alpha-GGUF"), "other/alpha-GGUF:Q8_0");
});

test("an alias that moves to another model means that one at once", () => {
  const [alpha, beta] = ["acme/alpha:Q8_0", "acme/beta:Q8_0"];
  const scene: Scene = {
    files: ["acme/alpha/alpha-Q8_0.gguf", "acme/beta/beta-Q8_0.gguf"],
    document: { models: [{ id: alpha, aliases: ["mine"] }, beta] },
  };
  const meaning = lookingUp(scene);
  assert.equal(meaning("mine:latest"), alpha);
  assert.equal(meaning("MINE"), alpha);
  scene.document = { models: [alpha, { id: beta, aliases: ["mine"] }] };
  assert.equal(meaning("mine:latest"), beta);
  assert.equal(meaning("MINE"), beta);
});
