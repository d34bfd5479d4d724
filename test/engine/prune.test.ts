// Prune, end to end: it takes what this gateway stored and the document no longer names, never another program's files, and
// nothing of a list that somebody emptied.
import assert from "node:assert/strict";
import { mkdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { entriesBelow } from "../../src/state/folder.ts";
import { sha256, withGgufHead } from "../support/cache-folder.ts";
import { cacheTalker, type GatewayFolders, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { type LoopbackHub, startLoopbackHub } from "../support/loopback-hub.ts";
import { modelBytes, talkingModel } from "../support/models.ts";
import { patchWith } from "../support/requests.ts";

const repo = "acme/pulled";
const eight = `${repo}:Q8_0`;
const bytes = modelBytes(talkingModel("eight"));

interface Started {
  readonly hub: LoopbackHub;
  readonly folders: GatewayFolders;
  readonly gateway: TestGateway;
  /** In the document, and none of this gateway's. */
  readonly other: string;
  /** The repository's folder. */
  readonly root: string;
}

async function started(t: TestContext, files: Readonly<Record<string, Uint8Array>>): Promise<Started> {
  const hub = await startLoopbackHub(t);
  hub.addRepo(repo, { files });
  const folders = await makeFolders(t);
  const other = await cacheTalker(folders, "acme/other");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nprune: true\npruneAfter: 0\nmodels: ["${other}", "${eight}"]\n`,
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  return { hub, folders, gateway, other, root: join(folders.cacheDir, "models--acme--pulled") };
}

async function world(root: string): Promise<string[]> {
  const entries = await entriesBelow(root).catch(() => []);
  const lines = entries
    .filter((entry) => !entry.isDirectory())
    .map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      return path.slice(root.length + 1) + (entry.isSymbolicLink() ? ` -> ${await readlink(path)}` : "");
    });
  return (await Promise.all(lines)).sort();
}

function applied(gateway: TestGateway, generation: number) {
  return gateway.until(
    `at rest at generation ${generation}`,
    (status) => status.observedGeneration >= generation && status.sync === "Synced" && status.running.length === 0,
  );
}

function synced(gateway: TestGateway): string | undefined {
  return gateway.gateway.status().conditions.find(({ type }) => type === "Synced")?.reason;
}

test("another program's file of the same name at another revision stays, whatever names that revision", async (t) => {
  for (const how of ["a ref", "main, moved", "nothing"]) {
    const { gateway, other, root } = await started(t, { "m-Q8_0.gguf": bytes });
    const mine = await world(root);
    const theirs = modelBytes(talkingModel(`theirs, named by ${how}`));
    const commit = "b".repeat(40);
    await writeFile(join(root, "blobs", sha256(theirs)), theirs);
    await mkdir(join(root, "snapshots", commit));
    await symlink(`../../blobs/${sha256(theirs)}`, join(root, "snapshots", commit, "m-Q8_0.gguf"));
    await writeFile(join(root, "snapshots", commit, "config.json"), "{}");
    if (how === "a ref") await writeFile(join(root, "refs", "v2"), commit);
    if (how === "main, moved") await writeFile(join(root, "refs", "main"), commit);
    await gateway.json("/api/reconcile?wait=true", { method: "POST" });
    const both = await world(root);
    await gateway.writeConfig(`version: 1\nprune: true\npruneAfter: 0\nmodels: ["${other}"]\n`);
    await applied(gateway, 2);
    // Where the listed model is theirs, ours is out of sight and stays.
    assert.deepEqual(
      await world(root),
      how === "main, moved" ? both : both.filter((line) => !mine.includes(line)),
      how,
    );
    assert.deepEqual(await readFile(join(root, "snapshots", commit, "m-Q8_0.gguf")), Buffer.from(theirs), how);
    await gateway.gateway.stop();
  }
});

test("what a pull of a sibling carried along to a newer revision is pruned too, also once the sibling is gone", async (t) => {
  const four = modelBytes(talkingModel("four"));
  const projector = withGgufHead(Buffer.alloc(100, "projector "));
  const files = { "m-Q8_0.gguf": bytes, "m-Q4_0.gguf": four, "mmproj-F16.gguf": projector };
  const { hub, gateway, other, root } = await started(t, files);
  hub.updateRepo(repo, { files: { ...files, "README.md": Buffer.from("new") } });
  await gateway.writeConfig(
    `version: 1\nprune: true\npruneAfter: 0\nmodels: ["${other}", "${eight}", "${repo}:Q4_0"]\n`,
  );
  await applied(gateway, 2);
  assert.equal((await world(root)).filter((line) => line.includes("m-Q8_0.gguf")).length, 2);
  await gateway.writeConfig(`version: 1\nprune: true\npruneAfter: 0\nmodels: ["${other}", "${eight}"]\n`);
  await applied(gateway, 3);
  assert.equal((await world(root)).filter((line) => line.includes("m-Q4_0.gguf")).length, 0);
  assert.deepEqual(
    gateway.gateway
      .status()
      .models.map(({ id }) => id)
      .sort(),
    [other, eight].sort(),
  );
  await gateway.writeConfig(`version: 1\nprune: true\npruneAfter: 0\nmodels: ["${other}"]\n`);
  await applied(gateway, 4);
  assert.deepEqual(await world(root), []);
});

test("a file that is saved with its list emptied prunes nothing, whatever calls have put in, over a restart too", async (t) => {
  const { hub, folders, gateway, other, root } = await started(t, { "m-Q8_0.gguf": bytes });
  hub.addRepo("acme/called", { files: { "called-Q8_0.gguf": modelBytes(talkingModel("called")) } });
  await gateway.json("/api/desired?wait=true", patchWith({ models: { "acme/called:Q8_0": {} } }));
  const all = await world(root);
  await gateway.writeConfig("version: 1\nprune: true\npruneAfter: 0\nmodels: []\n");
  const emptied = await applied(gateway, 3);
  assert.deepEqual(
    emptied.models.filter(({ desired }) => desired).map(({ id }) => id),
    ["acme/called:Q8_0"],
  );
  assert.equal(synced(gateway), "PruneHeld");
  const { body } = await gateway.json("/api/plan");
  assert.deepEqual([body["spared"], body["converged"]], [[eight], true]);
  assert.deepEqual(await world(root), all);
  await gateway.gateway.stop();

  const again = await startTestGateway(t, { folders, environment: { HF_ENDPOINT: hub.endpoint } });
  await again.converged();
  await again.json("/api/desired?wait=true", patchWith({ models: { [other]: {} } }));
  assert.equal(synced(again), "PruneHeld");
  assert.deepEqual(await world(root), all);
  // Said in so many words it is done, and what is named stays.
  await again.json("/api/desired?wait=true", patchWith({ allowEmpty: true }));
  await again.until("pruned", (status) => status.sync === "Synced" && !status.models.some(({ id }) => id === eight));
  assert.deepEqual(await world(root), []);
  assert.equal(synced(again), "AsDesired");
  assert.match(await again.ask("acme/called:Q8_0"), /called/);
});
