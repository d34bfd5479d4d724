// A cache that goes away while it is being read: nobody knows then what is in it, and nothing must be taken for deleted.
import assert from "node:assert/strict";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createCacheScanner } from "../../../../src/cache/scan/scan.ts";
import { cacheRepo, commitOf, modelHead } from "../../../support/cache-folder.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const models = 24;
const rounds = 40;

test("a cache that is renamed in the middle of a look is unknown, or seen whole", async (t) => {
  const cacheDir = join(await scratchFolder(t), "hub");
  for (let index = 0; index < models; index++) {
    const repo = cacheRepo(cacheDir, `acme/m${index}`);
    await repo.link(commitOf("first"), "model-Q8_0.gguf", modelHead(`m${index}`));
    await repo.main(commitOf("first"));
  }
  const outcomes = { whole: 0, unknown: 0 };
  for (let round = 0; round < rounds; round++) {
    const scanner = createCacheScanner(cacheDir);
    const looking = scanner.scan();
    // A little later each time, up to after the last read.
    for (let turn = 0; turn < round; turn++) await new Promise((resolve) => setImmediate(resolve));
    await rename(cacheDir, `${cacheDir}-away`);
    const seen = await looking;
    await rename(`${cacheDir}-away`, cacheDir);
    const isEmpty = seen.state === "known" && seen.value.signature === "empty";
    if (seen.state === "unknown") outcomes.unknown++;
    else if (!isEmpty) {
      outcomes.whole++;
      assert.equal(seen.value.models.length, models, `round ${round}`);
    }
    const after = await scanner.scan();
    const contexts = after.state === "known" ? after.value.models.map(({ nCtxTrain }) => nCtxTrain) : [];
    assert.deepEqual(
      contexts,
      Array.from({ length: models }, () => 4096),
      `after round ${round}`,
    );
  }
  assert.ok(outcomes.unknown > 0, JSON.stringify(outcomes));
});

test("a repository that is renamed in the middle of a look is seen whole by the next one", async (t) => {
  const cacheDir = await scratchFolder(t);
  const repo = cacheRepo(cacheDir, "acme/demo");
  for (let index = 0; index < models; index++)
    await repo.link(commitOf("first"), `m${index}-Q8_0.gguf`, modelHead(`m${index}`));
  await repo.main(commitOf("first"));
  const before = await createCacheScanner(cacheDir).scan();
  let partly = 0;
  for (let round = 0; round < 4 * rounds; round++) {
    const scanner = createCacheScanner(cacheDir);
    const looking = scanner.scan();
    for (let turn = 0; turn < round / 4; turn++) await new Promise((resolve) => setImmediate(resolve));
    await rename(repo.root, `${repo.root}-away`);
    const seen = await looking;
    await rename(`${repo.root}-away`, repo.root);
    if (seen.state === "known" && seen.value.models.some(({ nCtxTrain }) => nCtxTrain === null)) partly++;
    assert.deepEqual(await scanner.scan(), before, `after round ${round}`);
  }
  assert.ok(partly > 0, "in some rounds it went between its listing and its last file");
});
