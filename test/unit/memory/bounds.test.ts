import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createBounds } from "../../../src/memory/bounds.ts";
import { host } from "../../../src/memory/need.ts";

describe("what a model takes at most with another context", () => {
  it("is in proportion to a larger one, and no less with a smaller one", () => {
    const bounds = createBounds();
    bounds.note("a", 1024, new Map([[host, 300]]));
    assert.deepEqual(bounds.of("a", 4096), new Map([[host, 1200]]));
    assert.deepEqual(bounds.of("a", 512), new Map([[host, 300]]));
  });

  it("is not known with other settings, nor where another device has layers", () => {
    const bounds = createBounds();
    bounds.note(
      "a",
      1024,
      new Map([
        [host, 300],
        ["CUDA0", 500],
      ]),
    );
    assert.equal(bounds.of("a", 2048), null);
    assert.equal(bounds.of("b", 1024), null);
  });
});
