// The cache that pulls, a second revision, a removal and collecting leave behind, read by others: the hub's own JavaScript
// library without a warning, and the real router, which lists and loads what is there and nothing else.
import assert from "node:assert/strict";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { scanCacheDir } from "@huggingface/hub";
import { createGatewayClient } from "model-gateway/client";
import { sha256 } from "../support/cache-folder.ts";
import { makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { patchWith } from "../support/requests.ts";

/** What the hub's library sees: repository, commit, refs, and each file with its size. */
async function seen(cacheDir: string): Promise<{ warnings: string[]; repos: unknown[] }> {
  const { repos, warnings } = await scanCacheDir(cacheDir);
  return {
    warnings: warnings.map(String),
    repos: repos
      .map(({ id, revisions }) => ({
        repo: id.name,
        revisions: revisions
          .map(({ commitOid, refs, files, path }) => ({
            commit: commitOid,
            refs: refs.toSorted(),
            files: files.map((file) => `${file.path.slice(path.length + 1)} ${file.blob.size}`).toSorted(),
          }))
          .toSorted((a, b) => (a.commit < b.commit ? -1 : 1)),
      }))
      .toSorted((a, b) => (a.repo < b.repo ? -1 : 1)),
  };
}

test("what the gateway leaves in the cache is read cleanly by the hub's library and served by the router", async (t) => {
  const hub = await startLoopbackHub(t);
  const [old, young, small] = ["old", "young", "small"].map((name) => modelBytes(talkingModel(name)));
  assert.ok(old && young && small);
  const first = hub.addRepo("acme/moving-GGUF", { files: { "moving-Q8_0.gguf": old, "moving-Q4_0.gguf": small } });
  hub.addRepo("acme/passing-GGUF", { files: { "passing-Q8_0.gguf": small } });
  const folders = await makeFolders(t);
  const [eight, four, passing] = ["acme/moving-GGUF:Q8_0", "acme/moving-GGUF:Q4_0", "acme/passing-GGUF:Q8_0"];
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${eight}", "${passing}"]\n`,
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  const client = createGatewayClient({ baseUrl: gateway.url });
  const { cacheDir } = folders;
  const revision = (commit: string, refs: string[], ...files: string[]) => ({ commit, refs, files });
  const passed = { repo: "acme/passing-GGUF", size: small.length };
  const before = await seen(cacheDir);
  assert.deepEqual(before.warnings, []);
  assert.deepEqual(before.repos[0], {
    repo: "acme/moving-GGUF",
    revisions: [revision(first, ["main"], `moving-Q8_0.gguf ${old.length}`)],
  });
  assert.match(JSON.stringify(before.repos[1]), new RegExp(`${passed.repo}.*passing-Q8_0.gguf ${passed.size}`));

  // The repository moves on; a blob is lost and its model pulled anew, then another quant.
  const second = hub.updateRepo("acme/moving-GGUF", {
    files: { "moving-Q8_0.gguf": young, "moving-Q4_0.gguf": small },
  });
  const lost = join(cacheDir, "models--acme--moving-GGUF", "blobs", sha256(old));
  await rm(lost);
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  await writeFile(lost, old);
  await gateway.json("/api/desired?wait=true", patchWith({ models: { [four]: {} } }));
  const moved = revision(second, ["main"], `moving-Q4_0.gguf ${small.length}`, `moving-Q8_0.gguf ${young.length}`);
  const between = await seen(cacheDir);
  assert.deepEqual(between.warnings, []);
  assert.deepEqual(between.repos[0], {
    repo: "acme/moving-GGUF",
    revisions: [revision(first, [], `moving-Q8_0.gguf ${old.length}`), moved].toSorted((a, b) =>
      a.commit < b.commit ? -1 : 1,
    ),
  });

  assert.equal((await client.disk.collect({ dryRun: false })).freedBytes, old.length);
  await client.remove(passing);
  await gateway.converged();
  assert.deepEqual(await seen(cacheDir), {
    warnings: [],
    repos: [{ repo: "acme/moving-GGUF", revisions: [moved] }],
  });
  assert.deepEqual(await readdir(cacheDir), ["models--acme--moving-GGUF"]);
  const listed = await client.models();
  assert.deepEqual(listed.map(({ id }) => id).toSorted(), [four, eight].toSorted());
  assert.equal(await gateway.ask(eight), answersOf("young").hello);
  assert.equal(await gateway.ask(four), answersOf("small").hello);
});
