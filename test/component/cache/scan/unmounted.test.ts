// A cache on a disk that goes away: what is left is an empty mount point, and that is no wish to pull everything again.
import assert from "node:assert/strict";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext, test } from "node:test";
import { createCachePresence, type StoredModels } from "../../../../src/cache/scan/presence.ts";
import { type CacheScanner, createCacheScanner } from "../../../../src/cache/scan/scan.ts";
import { cacheTalker } from "../../../support/folders.ts";
import { cannotMount, mountDisk } from "../../../support/mounts.ts";
import { scratchFolder } from "../../../support/scratch.ts";

async function cacheIn(t: TestContext): Promise<string> {
  const cacheDir = join(await scratchFolder(t), "hub");
  await mkdir(cacheDir);
  return cacheDir;
}

async function doubt(scanner: CacheScanner): Promise<string | null> {
  const found = await scanner.scan();
  return found.state === "unknown" ? found.why : null;
}

async function placeOf(cacheDir: string): Promise<string | null> {
  const found = await createCacheScanner(cacheDir).scan();
  return found.state === "known" ? (found.value.place ?? null) : null;
}

test("an unmounted cache is unknown, and known again once it is back", { skip: cannotMount }, async (t) => {
  const cacheDir = await cacheIn(t);
  const disk = mountDisk(t, cacheDir);
  await cacheTalker({ cacheDir }, "acme/a");
  const stored: StoredModels = { count: 1, place: await placeOf(cacheDir) };
  const scanner = createCacheScanner(cacheDir);
  assert.equal(await doubt(scanner), null);
  disk.unmount();
  assert.match((await doubt(scanner)) ?? "", /unmounted/);
  // At the first look of a start too, where the inventory says what was there.
  const afterStart = createCacheScanner(
    cacheDir,
    createCachePresence(cacheDir, () => stored),
  );
  assert.match((await doubt(afterStart)) ?? "", /unmounted/);
  disk.mount();
  await cacheTalker({ cacheDir }, "acme/a");
  assert.equal(await doubt(scanner), null);
  assert.equal(await doubt(afterStart), null);
});

describe("an empty cache", () => {
  const scannerWith = (cacheDir: string, stored: StoredModels) => {
    const presence = createCachePresence(cacheDir, () => stored);
    return { presence, scanner: createCacheScanner(cacheDir, presence) };
  };

  it("is empty where nothing was ever stored, and where its models went from the same folder", async (t) => {
    const cacheDir = await cacheIn(t);
    assert.equal(await doubt(scannerWith(cacheDir, { count: 0, place: null }).scanner), null);
    const { scanner } = scannerWith(cacheDir, { count: 2, place: await placeOf(cacheDir) });
    assert.equal(await doubt(scanner), null);
    await cacheTalker({ cacheDir }, "acme/a");
    assert.equal(await doubt(scanner), null);
    await rm(join(cacheDir, "models--acme--a"), { recursive: true });
    assert.equal(await doubt(scanner), null);
  });

  it("that is another folder than the one with the models is doubted until somebody says that it is right", async (t) => {
    const cacheDir = await cacheIn(t);
    for (const place of ["1:2", null]) {
      const { scanner, presence } = scannerWith(cacheDir, { count: 2, place });
      assert.match((await doubt(scanner)) ?? "", /POST \/api\/reconcile/);
      assert.notEqual(await doubt(scanner), null);
      presence.believe();
      assert.equal(await doubt(scanner), null);
    }
  });

  it("in the place of one that was moved away is doubted, and so is none at all", async (t) => {
    const cacheDir = await cacheIn(t);
    await cacheTalker({ cacheDir }, "acme/a");
    const { scanner, presence } = scannerWith(cacheDir, { count: 0, place: null });
    assert.equal(await doubt(scanner), null);
    await rename(cacheDir, `${cacheDir}.away`);
    assert.match((await doubt(scanner)) ?? "", /ENOENT/);
    await mkdir(cacheDir);
    assert.match((await doubt(scanner)) ?? "", /unmounted/);
    presence.believe();
    assert.equal(await doubt(scanner), null);
    await rm(cacheDir, { recursive: true });
    await rename(`${cacheDir}.away`, cacheDir);
    assert.equal(await doubt(scanner), null);
    // That somebody believed it once says nothing of the next time.
    await rename(cacheDir, `${cacheDir}.away`);
    assert.match((await doubt(scanner)) ?? "", /ENOENT/);
  });
});
