// What the models take on the disk, over HTTP: on real files, beside the real engine, through the typed client.
import assert from "node:assert/strict";
import { link, mkdir, readdir, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createGatewayClient } from "model-gateway/client";
import { collectedSchema, diskSchema } from "../../schemas/disk.ts";
import { sha256, withGgufHead } from "../support/cache-folder.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { codeOf } from "../support/own-calls.ts";
import { patchWith, postWith } from "../support/requests.ts";
import { assertFits } from "../support/schemas.ts";

const repo = "acme/new-GGUF";
const model = `${repo}:Q8_0`;
const folder = "models--acme--new-GGUF";

test("the disk report and collecting, through a pull, a move of the repository and a second pull", async (t) => {
  const hub = await startLoopbackHub(t);
  const [older, newer] = [modelBytes(talkingModel("older")), modelBytes(talkingModel("newer"))];
  hub.addRepo(repo, { files: { "new-Q8_0.gguf": older } });
  const folders = await makeFolders(t);
  const foreign = await cacheTalker(folders, "acme/foreign");
  // The same bytes in another repository, as a hard link.
  const [blob = ""] = await readdir(join(folders.cacheDir, "models--acme--foreign", "blobs"));
  const twin = join(folders.cacheDir, "models--acme--twin");
  const commit = "e".repeat(40);
  for (const path of ["blobs", `snapshots/${commit}`, "refs"]) await mkdir(join(twin, path), { recursive: true });
  await link(join(folders.cacheDir, "models--acme--foreign", "blobs", blob), join(twin, "blobs", blob));
  await symlink(`../../blobs/${blob}`, join(twin, "snapshots", commit, "twin-Q8_0.gguf"));
  await writeFile(join(twin, "refs", "main"), commit);

  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${model}"]\n`,
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  const client = createGatewayClient({ baseUrl: gateway.url });
  const entry = async (id: string) => (await client.disk.report()).models.find((each) => each.id === id);

  await t.test("each model says what it takes and whose it is", async () => {
    const report = await client.disk.report();
    assertFits(diskSchema, report, "the report");
    const talker = modelBytes(talkingModel("acme/foreign")).length;
    assert.deepEqual(
      report.models.map(({ id, bytes, ours, desired, present, lastUsed }) => [
        id,
        bytes,
        ours,
        desired,
        present,
        lastUsed,
      ]),
      [
        [foreign, talker, false, false, true, null],
        [model, older.length, true, true, true, null],
        ["acme/twin:Q8_0", talker, false, false, true, null],
      ],
    );
    const { totals } = report;
    assert.deepEqual(
      [totals.bytes, totals.modelBytes, totals.staleBytes, totals.orphanBytes, totals.partialBytes],
      [talker + older.length, talker + older.length, 0, 0, 0],
    );
    assert.ok((totals.freeBytes ?? 0) > 0);
  });

  await t.test("last use is told", async () => {
    const before = Date.now();
    await gateway.ask(foreign);
    const used = Date.parse((await entry(foreign))?.lastUsed ?? "");
    assert.ok(used >= before && used <= Date.now());
    assert.equal((await entry(foreign))?.loaded, true);
    assert.equal((await entry(model))?.lastUsed, null);
  });

  // The repository moves on, and the link of the model is lost: it is pulled anew, at the new commit.
  const second = hub.updateRepo(repo, { files: { "new-Q8_0.gguf": newer } });
  await rm(join(folders.cacheDir, folder, "blobs", sha256(older)));
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  await writeFile(join(folders.cacheDir, folder, "blobs", sha256(older)), older);

  await t.test("what is stale is told, and what of it collecting would free", async () => {
    const found = await entry(model);
    assert.deepEqual([found?.bytes, found?.staleBytes, found?.files], [newer.length, older.length, 1]);
    assert.equal((await client.disk.report()).totals.collectableBytes, older.length);
  });

  await t.test("collecting tells first, refuses a mistyped word, and deletes only when asked", async () => {
    const look = await gateway.json("/api/models/gc", { method: "POST" });
    assertFits(collectedSchema, look.body, "the dry run");
    assert.deepEqual([look.status, look.body["dryRun"], look.body["deletedFiles"]], [200, true, 0]);
    for (const query of ["dryrun=false", "dryRun=no"]) {
      const refused = await gateway.json(`/api/models/gc?${query}`, { method: "POST" });
      assert.deepEqual([refused.status, codeOf(refused)], [400, "invalid_request"], query);
    }
    // What a body has makes no difference.
    const { body } = await gateway.json("/api/models/gc", postWith({ dryRun: false }));
    assert.equal(body["dryRun"], true);
    assert.deepEqual(await readFile(join(folders.cacheDir, folder, "blobs", sha256(older))), Buffer.from(older));

    await gateway.json("/api/desired", patchWith({ suspend: true }));
    const suspended = await gateway.json("/api/models/gc?dryRun=false", { method: "POST" });
    assert.deepEqual([suspended.status, codeOf(suspended)], [409, "suspended"]);
    await gateway.json("/api/desired", patchWith({ suspend: null }));

    await gateway.ask(model);
    const loaded = await client.disk.collect({ dryRun: false });
    assert.deepEqual([loaded.deletedFiles, loaded.skipped.map(({ reason }) => reason)], [0, ["ModelLoaded"]]);
    await client.eject(model);
    const [done, twice] = await Promise.all([1, 2].map(() => client.disk.collect({ dryRun: false })));
    assertFits(collectedSchema, done, "what was collected");
    assert.deepEqual(
      [done?.dryRun, done?.deletedFiles, done?.freedBytes, done?.items.map(({ reason }) => reason)],
      [false, 2, older.length, ["StaleRevision"]],
    );
    assert.ok(twice?.deletedFiles === 2 || twice?.deletedFiles === 0);
    await gateway.converged();
    assert.deepEqual(await readdir(join(folders.cacheDir, folder, "snapshots")), [second]);
    assert.match(await gateway.ask(model), /newer/);
    assert.equal((await entry(model))?.staleBytes, 0);
  });

  await t.test("what a pull that broke off has left is told; it goes once nobody wants it", async () => {
    const blobs = join(folders.cacheDir, folder, "blobs");
    const partial = join(blobs, `${"a".repeat(64)}.gw.incomplete`);
    await writeFile(partial, "x".repeat(10_000));
    assert.equal((await client.disk.report()).totals.partialBytes, 10_000);
    await client.eject(model);
    assert.deepEqual((await client.disk.collect()).items, []);
    const old = new Date(Date.now() - 7_200_000);
    await utimes(partial, old, old);
    assert.deepEqual(
      (await client.disk.collect({ dryRun: false })).items.map(({ kind, reason, bytes }) => [kind, reason, bytes]),
      [["partial", "AbandonedPartial", 10_000]],
    );
    assert.equal((await client.disk.report()).totals.partialBytes, 0);
  });

  await gateway.gateway.stop();
  const saved = JSON.parse(await readFile(join(folders.stateDir, "last-used.json"), "utf8")) as { models: object };
  assert.deepEqual(Object.keys(saved.models).toSorted(), [foreign, model].toSorted());
  const again = await startTestGateway(t, { folders });
  const report = await createGatewayClient({ baseUrl: again.url }).disk.report();
  assert.ok(report.models.find(({ id }) => id === foreign)?.lastUsed);
});

test("an unfinished pull of several files says what the whole model is, also between two tries", async (t) => {
  const hub = await startLoopbackHub(t);
  const shards = [1, 2, 3].map((number) => `large-Q8_0-0000${number}-of-00003.gguf`);
  const files = Object.fromEntries(
    shards.map((path, index) => [path, withGgufHead(Buffer.alloc(1_000_000 * (index + 1), index + 1))]),
  );
  hub.addRepo("acme/large-GGUF", { files });
  const hold = hub.throttle(shards[1] ?? "", 1_000_000);
  const gateway = await startTestGateway(t, {
    yaml: 'version: 1\nmodels: ["acme/large-GGUF:Q8_0"]\n',
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  const client = createGatewayClient({ baseUrl: gateway.url });
  const partial = async () => (await client.disk.report()).models[0]?.partial;
  await hold.reached;
  const during = await partial();
  assert.equal(during?.total, 6_000_000);
  assert.ok((during?.bytes ?? 0) >= 1_000_000);
  hub.removeRepo("acme/large-GGUF");
  hold.release();
  await gateway.until("given up for now", ({ planned }) => planned.length > 0);
  assert.equal((await partial())?.total, 6_000_000);
});

test("a model that the document names otherwise says how", async (t) => {
  const folders = await makeFolders(t);
  const id = await cacheTalker(folders, "acme/odd-GGUF", "odd", "alpha-Q8_0.gguf");
  const gateway = await startTestGateway(t, { folders, yaml: 'version: 1\nmodels: ["acme/odd-GGUF:alpha-Q8_0"]\n' });
  const [model] = (await createGatewayClient({ baseUrl: gateway.url }).disk.report()).models;
  assert.deepEqual([model?.id, model?.documentName], [id, "acme/odd-GGUF:alpha-Q8_0"]);
});
