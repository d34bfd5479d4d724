// Pulling, importing and removing as the executor runs them: files in a real cache, the inventory beside it.
import assert from "node:assert/strict";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Executor } from "../../../src/execute/executor.ts";
import { acting, eight, files, four, repo, requested } from "../../support/acting.ts";
import { modelHead, sha256, withGgufHead } from "../../support/cache-folder.ts";

describe("models come and go", () => {
  it("pulled ones are in the cache and the inventory, and are gone with their last trace", async (t) => {
    const { hub, act, cached, inventory, drained, cacheDir } = await acting(t);
    hub.addRepo(repo, { files });
    assert.equal((await act("model.pull", eight)).error, null);
    assert.deepEqual(
      (await cached()).map(({ id, complete, nCtxTrain }) => [id, complete, nCtxTrain]),
      [[eight, true, 8192]],
    );
    assert.deepEqual(
      inventory.get(eight)?.files.map(({ path, blob }) => [path, blob]),
      [
        ["demo-Q8_0.gguf", sha256(files["demo-Q8_0.gguf"])],
        ["mmproj-F16.gguf", sha256(files["mmproj-F16.gguf"])],
      ],
    );
    assert.equal((await act("model.remove", eight)).error, null);
    assert.deepEqual([drained, await readdir(cacheDir), inventory.entries()], [[eight, "let in"], [], []]);
  });

  it("removing one of two quants leaves the other, with the projector that both use", async (t) => {
    const { hub, act, cached, blobs, inventory, cacheDir } = await acting(t);
    hub.addRepo(repo, { files });
    await act("model.pull", eight);
    await act("model.pull", four);
    await act("model.remove", eight);
    const [model, ...others] = await cached();
    assert.deepEqual([model?.id, model?.complete, others.length], [four, true, 0]);
    assert.ok(model?.projector?.endsWith("mmproj-F16.gguf"));
    assert.deepEqual(await blobs(), [sha256(files["demo-Q4_0.gguf"]), sha256(files["mmproj-F16.gguf"])].sort());
    assert.deepEqual(
      inventory.entries().map(({ id }) => id),
      [four],
    );
    await act("model.remove", four);
    assert.deepEqual(await readdir(cacheDir), []);
  });

  it("a removal that was cut short is finished by the next, whatever was left", async (t) => {
    for (const left of ["the projector's link", "blobs alone"]) {
      const { hub, act, cached, inventory, cacheDir } = await acting(t);
      hub.addRepo(repo, { files });
      await act("model.pull", eight);
      const [model] = await cached();
      await rm(model?.files[0] ?? "");
      if (left === "blobs alone") await rm(model?.projector ?? "");
      assert.deepEqual(await cached(), []);
      assert.equal((await act("model.remove", eight)).error, null);
      assert.deepEqual([await readdir(cacheDir), inventory.entries()], [[], []], left);
    }
  });

  it("imported ones are noted, keep their mark, and are removed without their source", async (t) => {
    const { root, act, cached, inventory, cacheDir } = await acting(t);
    await writeFile(join(root, "local.gguf"), modelHead("local", 99));
    assert.equal((await act("model.import", "local/x:Q8_0", "./local.gguf")).error, null);
    await inventory.noteKept(new Set(["local/x:Q8_0"]), new Set());
    await act("model.import", "local/x:Q8_0", "./local.gguf");
    assert.equal(inventory.get("local/x:Q8_0")?.keep, true);
    assert.equal((await cached())[0]?.nCtxTrain, 99);
    await act("model.remove", "local/x:Q8_0");
    assert.deepEqual([(await readdir(root)).includes("local.gguf"), await readdir(cacheDir)], [true, []]);
  });

  it("what is not in the inventory is not ours to remove", async (t) => {
    const { hub, act, cached, inventory } = await acting(t);
    hub.addRepo(repo, { files });
    await act("model.pull", eight);
    await inventory.remove(eight);
    assert.equal((await act("model.remove", eight)).error?.code, "model_not_found");
    assert.equal((await cached()).length, 1);
  });

  it("what somebody asked to remove goes whoever put it there, as often as it is tried, and takes no namesake along", async (t) => {
    const { hub, act, cached, inventory, removals, cacheDir } = await acting(t);
    hub.addRepo(repo, { files: { ...files, "demo-UD-Q8_0.gguf": modelHead("other eight") } });
    await act("model.pull", eight);
    await act("model.pull", `${repo}:demo-UD-Q8_0`);
    await inventory.remove(eight);
    const model = (await cached()).find(({ id }) => id === eight);
    assert.ok(model);
    const { commit } = model;
    const removal = { ...requested, commit, files: ["demo-Q8_0.gguf"], projector: "mmproj-F16.gguf" };
    removals.set(eight, removal);
    const { error, removed } = await act("model.remove", eight);
    assert.deepEqual([error, removed], [null, { deletedFiles: 2, freedBytes: files["demo-Q8_0.gguf"].length }]);
    assert.equal(removals.has(eight), false);
    // The other quant has its id now, and a removal that is tried once more must not take it.
    const left = async (): Promise<unknown> =>
      (await cached()).map(({ id, digest, projector }) => [id, digest, projector !== null]);
    const other = [[eight, sha256(modelHead("other eight")), true]];
    assert.deepEqual(await left(), other);
    removals.set(eight, removal);
    assert.deepEqual((await act("model.remove", eight)).removed, { deletedFiles: 0, freedBytes: 0 });
    assert.deepEqual(await left(), other);
    removals.set(eight, { ...removal, files: ["demo-UD-Q8_0.gguf"] });
    assert.equal((await act("model.remove", eight)).error, null);
    assert.deepEqual([await readdir(cacheDir), inventory.entries()], [[], []]);
  });

  it("a removal that was taken back while it waited for answers deletes nothing", async (t) => {
    const { hub, act, cached, removals } = await acting(t);
    hub.addRepo(repo, { files });
    await act("model.pull", eight);
    removals.set(eight, { ...requested, files: ["demo-Q8_0.gguf"] });
    const acted = act("model.remove", eight);
    removals.delete(eight);
    const { error, removed } = await acted;
    assert.deepEqual([error?.code, removed], ["cancelled", null]);
    assert.equal((await cached()).length, 1);
  });

  for (const [what, model, source, code] of [
    ["a pull of a repository that is not there", "acme/none:Q8_0", undefined, "hub_not_found"],
    ["a pull of a quant that is not there", `${repo}:Q2_K`, undefined, "quant_not_found"],
    ["an import without its source", "local/x:Q8_0", "none.gguf", "source_missing"],
    ["an id that is none", "nonsense", undefined, "invalid_request"],
  ] as const) {
    it(`${what} fails as ${code}, and leaves nothing`, async (t) => {
      const { hub, act, inventory, cacheDir } = await acting(t);
      hub.addRepo(repo, { files });
      assert.equal((await act(source === undefined ? "model.pull" : "model.import", model, source)).error?.code, code);
      assert.deepEqual([await readdir(cacheDir), inventory.entries()], [[], []]);
    });
  }

  it("a cache that cannot be made is told as such", async (t) => {
    const { hub, act, cacheDir } = await acting(t);
    hub.addRepo(repo, { files });
    await mkdir(join(cacheDir, ".."), { recursive: true });
    await writeFile(cacheDir, "");
    assert.equal((await act("model.pull", eight)).error?.code, "cache_unwritable");
  });
});

describe("a pull that is broken off", () => {
  const shards = {
    "demo-Q8_0-00001-of-00002.gguf": modelHead("one"),
    "demo-Q8_0-00002-of-00002.gguf": withGgufHead(Buffer.alloc(3_000_000, "two ")),
  };
  const first = sha256(shards["demo-Q8_0-00001-of-00002.gguf"]);

  it("keeps its finished shards where the gateway stops, and drops them where nobody wants it any more", async (t) => {
    for (const [end, code, left] of [
      [(executor: Executor) => executor.close(), "shutting_down", [`${first}.gw.incomplete`]],
      [async (executor: Executor) => executor.cancel(`model/${eight}`), "cancelled", []],
    ] as const) {
      const { hub, act, executor, blobs, cached } = await acting(t);
      hub.addRepo(repo, { files: shards });
      const hold = hub.throttle("demo-Q8_0-00002-of-00002.gguf", 1_000_000);
      const pulling = act("model.pull", eight);
      await hold.reached;
      await end(executor);
      const { error } = await pulling;
      hold.release();
      assert.equal(error?.code, code);
      const kept = (await blobs()).filter((name) => name.startsWith(first) && !name.includes(".sidecar."));
      assert.deepEqual(kept, left);
      assert.deepEqual(await cached(), []);
    }
  });
});
