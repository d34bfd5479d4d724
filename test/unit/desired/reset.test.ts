// Fields as the applied file has them.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { GatewayError } from "../../../src/core/errors.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { resetTree } from "../../../src/desired/reset.ts";

const a = "acme/a-v1.5:Q8_0";
const b = "acme/b:Q8_0";
const file: JsonObject = { version: 1, models: { [a]: { ctxSize: 512 }, [b]: {} } };
const now: JsonObject = {
  version: 1,
  suspend: true,
  context: { default: 1024 },
  rpc: { mode: "rpc", workers: ["h:1"] },
  models: { [a]: { ctxSize: 2048, preset: { temp: 1, seed: 7 } }, "acme/c:Q8_0": { keep: true } },
};

function reset(...fields: string[]): JsonObject {
  return resetTree(file, now, fields);
}

describe("reset", () => {
  it("without fields makes the document the file", () => {
    assert.deepEqual(resetTree(file, now, null), file);
    assert.deepEqual(resetTree(file, file, null), file);
  });

  it("resets a field, or all below it", () => {
    assert.deepEqual(reset("suspend")["suspend"], undefined);
    assert.deepEqual((reset(`models.${a}.ctxSize`)["models"] as JsonObject)[a], {
      ctxSize: 512,
      preset: { temp: 1, seed: 7 },
    });
    assert.deepEqual((reset(`models.${a}`)["models"] as JsonObject)[a], { ctxSize: 512 });
    assert.deepEqual(reset("models")["models"], file["models"]);
    assert.deepEqual((reset(`models.${b}`)["models"] as JsonObject)[b], {});
  });

  it("resets a field of a part that only calls have set, and leaves no empty part behind", () => {
    assert.deepEqual(reset("rpc.mode")["rpc"], { workers: ["h:1"] });
    assert.equal(reset("rpc.mode", "rpc.workers")["rpc"], undefined);
    assert.equal(reset("context.default")["context"], undefined);
    assert.deepEqual((reset(`models.${a}.preset.temp`)["models"] as JsonObject)[a], {
      ctxSize: 2048,
      preset: { seed: 7 },
    });
    assert.deepEqual((reset("models.acme/c:Q8_0.keep")["models"] as JsonObject)["acme/c:Q8_0"], {});
  });

  it("of a model leaves another whose id begins with its id and a dot", () => {
    const models = { "acme/m:v1": { ctxSize: 1 }, "acme/m:v1.5": { ctxSize: 2, keep: true } };
    const both: JsonObject = { version: 1, models };
    const withoutFirst = { version: 1, models: { "acme/m:v1.5": models["acme/m:v1.5"] } };
    const withoutSecond = { version: 1, models: { "acme/m:v1": models["acme/m:v1"] } };
    const withoutSize = { version: 1, models: { ...models, "acme/m:v1.5": { keep: true } } };
    for (const applied of [{ version: 1, models: {} }, { version: 1 }]) {
      assert.deepEqual(resetTree(applied, both, ["models.acme/m:v1"]), withoutFirst);
      assert.deepEqual(resetTree(applied, both, ["models.acme/m:v1.5"]), withoutSecond);
      assert.deepEqual(resetTree(applied, both, ["models.acme/m:v1.5.ctxSize"]), withoutSize);
    }
  });

  it("refuses what does not differ, and names what does", () => {
    for (const field of ["version", "context.other", `models.${a}.ctx`, "models.acme/d:Q8_0", "", "suspend.x"])
      assert.throws(
        () => reset(field),
        ({ code, message }: GatewayError) => code === "invalid_request" && /what does: .*suspend/.test(message),
        field,
      );
    assert.throws(() => resetTree(file, file, ["suspend"]), /nothing does/);
  });

  it("without fields makes any document the file, whatever is in it", () => {
    const values = fc.constantFrom<JsonObject[string][]>(1, true, "x", { d: 1 }, { d: 2, e: 1 });
    const tree = fc.dictionary(fc.constantFrom("context", "rpc", "speech"), values, {
      noNullPrototype: true,
    }) as fc.Arbitrary<JsonObject>;
    fc.assert(
      fc.property(tree, tree, (from, to) => {
        assert.deepEqual(resetTree(from, to, null), from);
      }),
    );
  });
});
