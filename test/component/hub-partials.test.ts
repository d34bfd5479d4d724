// What the cleaning of leftovers takes, and what it leaves.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { cleanPartials } from "../../src/hub/partials.ts";
import { startPulling } from "../support/pulling.ts";

const demo = { "demo-Q8_0.gguf": Buffer.alloc(3_000_000, "eight ") };
const id = "acme/demo-GGUF:Q8_0";

describe("cleaning partials", () => {
  it("removes our own and leaves those of other tools", async (t) => {
    const { hub, pull, cacheDir, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    await pull(id);
    const before = await world();
    const blobs = "models--acme--demo-GGUF/blobs";
    const digest = "ab".repeat(32);
    const foreign = [
      `${blobs}/${digest}.incomplete`,
      `${blobs}/${digest}.0123abcd.incomplete`,
      `${blobs}/${digest}.downloadInProgress`,
      `.locks/models--acme--demo-GGUF/${digest}.lock`,
      `datasets--acme--data/blobs/${digest}.gw.incomplete`,
    ];
    const own = [`${blobs}/${digest}.gw.incomplete`, "models--acme--demo-GGUF/.0f0f.gw.incomplete"];
    for (const path of [...foreign, ...own]) {
      await mkdir(join(cacheDir, path, ".."), { recursive: true });
      await writeFile(join(cacheDir, path), "half");
    }
    assert.deepEqual(await cleanPartials(cacheDir), own.sort());
    assert.deepEqual(await world(), [...before, ...foreign].sort());
    assert.deepEqual(await cleanPartials(join(cacheDir, "nowhere")), []);
  });

  it("leaves the one that is being written", async (t) => {
    const { hub, pull, cacheDir, shown, world } = await startPulling(t);
    hub.addRepo("acme/demo-GGUF", { files: demo });
    const hold = hub.throttle("demo-Q8_0.gguf", 2_000_000);
    let pulled: Promise<unknown> | undefined;
    await new Promise<void>((resolve) => {
      pulled = pull(id, { onProgress: (step) => (step.completed > 0 ? resolve() : undefined) });
    });
    assert.equal(
      (await world()).some((line) => line.endsWith(".gw.incomplete")),
      true,
    );
    assert.deepEqual(await cleanPartials(cacheDir), []);
    hold.release();
    await pulled;
    assert.deepEqual(await shown("acme/demo-GGUF", "demo-Q8_0.gguf"), demo["demo-Q8_0.gguf"]);
  });
});
