// What is noticed of files between two passes.
import assert from "node:assert/strict";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { createCacheScanner } from "../../../src/cache/scan/scan.ts";
import { toDesired, toTree } from "../../../src/desired/document/document.ts";
import { readDocumentFiles } from "../../../src/observe/document-files.ts";
import { watchFiles } from "../../../src/observe/file-watch.ts";
import type { Observed } from "../../../src/plan/observed.ts";
import { cacheRepo, commitOf, modelHead, sha256 } from "../../support/cache-folder.ts";
import { cleanUp } from "../../support/clean-up.ts";
import { scratchFolder, until } from "../../support/scratch.ts";

const commit = commitOf("main");

it("models that the document names are looked at, the others not; a source once it stays as it is", async (t) => {
  const root = await scratchFolder(t);
  const repo = cacheRepo(root, "acme/demo");
  const bytes = modelHead("eight");
  const eight = await repo.link(commit, "demo-Q8_0.gguf", bytes);
  const projector = await repo.link(commit, "mmproj-F16.gguf", modelHead("projector"));
  const four = await repo.link(commit, "demo-Q4_0.gguf", modelHead("four"));
  await repo.main(commit);
  const document = toDesired(
    toTree({
      version: 1,
      models: [
        { id: "acme/demo:Q8_0", lora: [{ source: "y.gguf" }] },
        { id: "local/x:Q8_0", source: "x.gguf" },
      ],
    }),
  );
  const desired = { generation: 1, tree: { version: 1 }, document, hash: "", etag: "", applied: null } as const;
  const scanner = createCacheScanner(root);
  const configPath = join(root, "gateway.yaml");
  let observed: Observed | null = null;
  const pass = async (): Promise<void> => {
    observed = { cache: await scanner.scan(), ...(await readDocumentFiles(configPath, document)) } as Observed;
  };
  let [looks, models, sources] = [0, 0, 0];
  const stop = watchFiles({
    everyMs: 5,
    configPath,
    last: () => {
      looks++;
      return observed && { desired, observed };
    },
    onModel: () => void models++,
    onSource: () => void sources++,
  });
  cleanUp(t, stop);
  /** What is noticed of a change, before the next pass and after it. */
  const noticed = async (change: () => Promise<unknown>): Promise<[boolean, boolean]> => {
    await pass();
    await rested();
    await change();
    await rested();
    const found: [boolean, boolean] = [models > 0, sources > 0];
    await pass();
    await rested();
    assert.deepEqual([models, sources], [0, 0], "what a pass has seen is no news");
    return found;
  };
  /** Three looks from now on. */
  const rested = async (): Promise<void> => {
    const from = looks;
    await until("a look is over", () => looks > from + 1);
    [models, sources] = [0, 0];
    await until("three looks", () => looks > from + 5);
  };

  assert.deepEqual(await noticed(async () => undefined), [false, false]);
  assert.deepEqual(await noticed(() => rm(four)), [false, false]);
  assert.deepEqual(await noticed(() => writeFile(join(repo.root, "blobs", "x.gw.incomplete"), "x")), [false, false]);
  for (const path of [eight, projector, join(repo.root, "blobs", sha256(bytes)), repo.root]) {
    assert.deepEqual(await noticed(() => rename(path, `${path}.away`)), [true, false], path);
    await rename(`${path}.away`, path);
  }
  assert.deepEqual(await noticed(() => writeFile(eight, bytes.subarray(1))), [true, false]);
  assert.deepEqual(await noticed(() => writeFile(join(root, "x.gguf"), "x")), [false, true]);
  assert.deepEqual(await noticed(() => rm(join(root, "x.gguf"))), [false, true]);
  assert.deepEqual(await noticed(() => writeFile(join(root, "y.gguf"), "y")), [true, false]);
});

it("of many models each is looked at in its turn", async (t) => {
  const root = await scratchFolder(t);
  const repo = cacheRepo(root, "acme/demo");
  const ids = Array.from({ length: 120 }, (_, index) => `acme/demo:m${index}`);
  for (const id of ids) await repo.plain(commit, `${id.slice("acme/demo:".length)}.gguf`, modelHead(id));
  await repo.main(commit);
  const document = toDesired(toTree({ version: 1, models: ids }));
  const desired = { generation: 1, tree: { version: 1 }, document, hash: "", etag: "", applied: null } as const;
  const cache = await createCacheScanner(root).scan();
  assert.ok(cache.state === "known" && cache.value.models.length === ids.length);
  const observed = { cache, sources: new Map(), documentFiles: new Map() } as unknown as Observed;
  let [looks, news] = [0, 0];
  const stop = watchFiles({
    everyMs: 2,
    configPath: join(root, "gateway.yaml"),
    last: () => {
      looks++;
      return { desired, observed };
    },
    onModel: () => void news++,
    onSource: () => undefined,
  });
  cleanUp(t, stop);
  const round = async (): Promise<number> => {
    const from = looks;
    await until("a look is over", () => looks > from + 1);
    news = 0;
    await until("three looks", () => looks > from + 5);
    return news;
  };
  // A check has room for a hundred.
  for (const at of [0, 1, 40, 80, 98, 99, 100, 101, 119]) {
    const path: string = cache.value.models[at]?.files[0] ?? "";
    await rename(path, `${path}.away`);
    assert.ok((await round()) > 0, path);
    await rename(`${path}.away`, path);
    assert.equal(await round(), 0, path);
  }
});
