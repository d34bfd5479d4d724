// When a call may name a model in the document that it does not name yet: never one that is being deleted or has gone, also
// where the last look at the cache is older than that.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isLeaving, keysToSet } from "../../../src/commands/naming.ts";
import type { Desired, Removal } from "../../../src/desired/document/document.ts";
import { toDesired } from "../../../src/desired/document/document.ts";
import type { CachedModel } from "../../../src/plan/observed.ts";
import { removalsSince } from "../../../src/plan/removals.ts";
import type { Pass } from "../../../src/reconcile/loop.ts";

const commit = "a".repeat(40);

function cached(id: string, file: string): CachedModel {
  const [repo = ""] = id.split(":");
  const files = [`/cache/models/snapshots/${commit}/${file}`];
  return { id, repo, commit, files, aliases: [], upstreamId: id } as unknown as CachedModel;
}

const model = cached("acme/foo:Q8_0", "foo-Q8_0.gguf");
const mark = { id: model.id, repo: model.repo, names: [model.id], files: ["foo-Q8_0.gguf"] } as unknown as Removal;
const plain: Desired = toDesired({ version: 1 });
const marked: Desired = toDesired({ version: 1 }, [mark]);
const named: Desired = toDesired({ version: 1, models: { "ACME/foo:q8_0": {} } });

function passOf(document: Desired, models: readonly CachedModel[], deleting: readonly string[] = []): Pass {
  const running = deleting.map((id) => ({ action: { kind: "model.remove", disrupts: [id] } }));
  const observed = { cache: { state: "known", value: { models, signature: "", unreadable: [] } } };
  return { desired: { document }, observed, running } as unknown as Pass;
}

describe("the ids under which a call says something of a model", () => {
  const notFound = { code: "model_not_found" };

  it("are those of the document, else the model's own", () => {
    assert.deepEqual(keysToSet(plain, model, passOf(plain, [model])), [model.id]);
    assert.deepEqual(keysToSet(named, model, passOf(plain, [model])), ["ACME/foo:q8_0"]);
    assert.deepEqual(keysToSet(plain, model, null), [model.id]);
  });

  it("are none for a model that is being deleted", () => {
    assert.throws(() => keysToSet(marked, model, passOf(plain, [model])), notFound);
    // Pruned: without a mark.
    assert.throws(() => keysToSet(plain, model, passOf(plain, [model], [model.id])), notFound);
  });

  it("are none for one whose removal has ended since the last look", () => {
    assert.throws(() => keysToSet(plain, model, passOf(marked, [model])), notFound);
    assert.equal(isLeaving(plain, model, passOf(marked, [model])), true);
  });

  it("are none for one that is not there any more, nor for a namesake", () => {
    assert.throws(() => keysToSet(plain, model, passOf(plain, [])), notFound);
    const namesake = cached(model.id, "foo-UD-Q8_0.gguf");
    assert.throws(() => keysToSet(plain, model, passOf(plain, [namesake])), notFound);
    assert.deepEqual(keysToSet(plain, namesake, passOf(marked, [namesake])), [model.id]);
  });

  it("are there again once somebody has named the model on purpose", () => {
    assert.deepEqual(keysToSet(named, model, passOf(marked, [model], [model.id])), ["ACME/foo:q8_0"]);
    assert.deepEqual(removalsSince(named, marked), []);
    assert.deepEqual(removalsSince(plain, marked), [mark]);
    assert.deepEqual(removalsSince(marked, plain), [mark]);
  });
});
