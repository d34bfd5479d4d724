// The disk report of a real cache: a file with several names counts once in the sums.
import assert from "node:assert/strict";
import { link, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { diskReport } from "../../../../src/cache/report/disk-report.ts";
import { createCacheScanner } from "../../../../src/cache/scan/scan.ts";
import { surveyCache } from "../../../../src/cache/scan/survey.ts";
import { toDesired, toTree } from "../../../../src/desired/document/document.ts";
import { cacheRepo, commitOf, modelHead, sha256 } from "../../../support/cache-folder.ts";
import { scratchFolder } from "../../../support/scratch.ts";

test("a file that two repositories have is of both models, and counts once in the sums", async (t) => {
  const cacheDir = await scratchFolder(t);
  const [shared, own] = [modelHead("shared"), modelHead("a model of its own")];
  const first = cacheRepo(cacheDir, "acme/first");
  const twin = cacheRepo(cacheDir, "acme/twin");
  const [now, old] = [commitOf("now"), commitOf("old")];
  await first.link(now, "first-Q8_0.gguf", shared);
  await first.link(old, "first-Q4_0.gguf", own);
  await mkdir(join(twin.root, "snapshots", now), { recursive: true });
  await link(join(first.root, "blobs", sha256(shared)), join(twin.root, "snapshots", now, "twin-Q8_0.gguf"));
  for (const repo of [first, twin]) await repo.main(now);

  const scanned = await createCacheScanner(cacheDir).scan();
  assert.ok(scanned.state === "known");
  const { models, totals } = diskReport({
    survey: await surveyCache(cacheDir),
    models: scanned.value.models,
    inventory: [],
    desired: toDesired(toTree({ version: 1 })),
    loaded: { state: "known", value: [] },
    speech: {
      running: { transcription: null, synthesis: null },
      ours: () => false,
      licenses: new Map(),
    },
    lastUsed: new Map(),
    totals: new Map(),
    garbage: { repos: [], skipped: [] },
    freeBytes: { state: "known", value: 1 },
    needOf: () => null,
  });
  assert.deepEqual(
    models.map(({ id, bytes }) => [id, bytes]),
    [
      ["acme/first:Q4_0", own.length],
      ["acme/first:Q8_0", shared.length],
      ["acme/twin:Q8_0", shared.length],
    ],
  );
  const all = shared.length + own.length;
  assert.deepEqual([totals.bytes, totals.modelBytes, totals.orphanBytes], [all, all, 0]);
});
