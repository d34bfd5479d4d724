// A model is removed while another one of its repository comes: what both use stays, and is not forgotten.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { describe, it } from "node:test";
import { acting, eight, files, four, repo, requested } from "../../support/acting.ts";
import { modelHead } from "../../support/cache-folder.ts";

describe("a removal during a pull", () => {
  for (const [end, left] of [
    ["goes on", ["demo-Q4_0.gguf", "mmproj-F16.gguf"]],
    ["is given up", []],
  ] as const) {
    it(`removing one quant leaves the projector that a pull of another counts on, which ${end}`, async (t) => {
      const { hub, act, executor, cached, blobs, inventory, removals, cacheDir } = await acting(t);
      const big = { ...files, "demo-Q4_0.gguf": Buffer.alloc(3_000_000, modelHead("four", 4096)) };
      hub.addRepo(repo, { files: big });
      await act("model.pull", eight);
      const hold = hub.throttle("demo-Q4_0.gguf", 1_000_000);
      const pulling = act("model.pull", four);
      await hold.reached;
      removals.set(eight, { ...requested, files: ["demo-Q8_0.gguf"], projector: "mmproj-F16.gguf" });
      assert.equal((await act("model.remove", eight)).error, null);
      assert.deepEqual([await cached(), removals.size], [[], 0]);
      if (end === "is given up") executor.cancel(`model/${four}`);
      hold.release();
      assert.equal((await pulling).error?.code, end === "is given up" ? "cancelled" : undefined);
      const shown = (await cached()).flatMap((model) => [...model.files, model.projector ?? ""]);
      assert.deepEqual(
        shown.map((path) => path.slice(path.lastIndexOf("/") + 1)),
        left,
      );
      // What nothing shows is known still, for collecting.
      const known = inventory.entries().flatMap((entry) => entry.files.map(({ blob }) => blob));
      for (const blob of await blobs()) assert.ok(known.includes(blob));
      await act("model.remove", end === "goes on" ? four : eight);
      removals.clear();
      assert.deepEqual(await readdir(cacheDir), []);
    });
  }
});
