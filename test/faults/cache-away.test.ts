// The model cache goes away, under a running gateway and before a start, and comes back: nothing is deleted, forgotten or
// pulled again, what is loaded answers, and the wait costs next to nothing.
import assert from "node:assert/strict";
import { mkdir, readFile, rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type GatewayFolders, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway, untilLoaded } from "../support/gateway.ts";
import { type LoopbackHub, startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { childrenOf } from "../support/processes.ts";
import { chatWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

const alpha = "acme/alpha:Q8_0";
const yaml = `version: 1\nprune: true\nmodels: [${alpha}]\n`;

interface Pulled {
  readonly hub: LoopbackHub;
  readonly folders: GatewayFolders;
  start(): Promise<TestGateway>;
}

async function pulled(t: TestContext): Promise<Pulled> {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/alpha", { files: { "alpha-Q8_0.gguf": modelBytes(talkingModel("alpha")) } });
  const folders = await makeFolders(t);
  return {
    hub,
    folders,
    start: () => startTestGateway(t, { folders, yaml, environment: { HF_ENDPOINT: hub.endpoint } }),
  };
}

function conditionOf(gateway: TestGateway, type: string): string {
  const { conditions, models } = gateway.gateway.status();
  const found = [...conditions, ...(models.find(({ id }) => id === alpha)?.conditions ?? [])].find(
    (condition) => condition.type === type,
  );
  return `${found?.status} ${found?.reason}`;
}

async function inventory(folders: GatewayFolders): Promise<unknown> {
  const { models } = JSON.parse(await readFile(join(folders.stateDir, "inventory.json"), "utf8")) as {
    models: unknown;
  };
  return models;
}

test("a cache that goes while the gateway runs is unknown, not empty; it comes back by itself", async (t) => {
  const { hub, folders, start } = await pulled(t);
  const gateway = await start();
  await gateway.converged();
  assert.equal(await gateway.ask(alpha), answersOf("alpha").hello);
  const [requests, before, { router }] = [hub.requests.length, await inventory(folders), gateway.gateway.status()];

  await rename(folders.cacheDir, `${folders.cacheDir}.away`);
  // Noticed though nothing else happens; and who asks for a look does not say that it is gone for good.
  await gateway.until("unknown", ({ sync }) => sync === "Unknown");
  assert.equal((await gateway.json("/api/reconcile", { method: "POST" })).status, 200);
  assert.equal(conditionOf(gateway, "Present"), "Unknown NotObserved");
  assert.equal(conditionOf(gateway, "RouterReady"), "True Running");
  await untilLoaded(gateway, alpha);
  assert.equal(await gateway.ask(alpha), answersOf("alpha").hello);

  // As the mount point of a disk that is not mounted.
  await mkdir(folders.cacheDir);
  const { user, system } = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  const used = process.cpuUsage();
  const usedMs = Math.round((used.user + used.system - user - system) / 1000);
  t.diagnostic(`${usedMs} ms of processor time in 2.5 s`);
  assert.ok(usedMs < 500, `${usedMs} ms of processor time in 2.5 s`);
  assert.equal(gateway.gateway.status().sync, "Unknown");
  assert.equal(await gateway.ask(alpha), answersOf("alpha").hello);

  // Not loaded any more, and its file is away: its loads fail, and it rests.
  assert.ok(router.pid !== null);
  for (const pid of await childrenOf(router.pid)) process.kill(pid, "SIGKILL");
  await until("its load fails", async () => {
    const { status } = await gateway.json("/v1/chat/completions", chatWith(alpha));
    return status >= 500;
  });

  await rmdir(folders.cacheDir);
  await rename(`${folders.cacheDir}.away`, folders.cacheDir);
  await gateway.converged();
  // At once: what kept it from being loaded is over.
  assert.equal(await gateway.ask(alpha), answersOf("alpha").hello);
  assert.deepEqual(await inventory(folders), before);
  assert.equal(hub.requests.length, requests);
  assert.equal(gateway.gateway.status().router.pid, router.pid);
});

for (const mountPoint of [true, false]) {
  test(`a cache that is away at a start (${mountPoint ? "an empty folder in its place" : "no folder"}) is waited for`, async (t) => {
    const { hub, folders, start } = await pulled(t);
    const first = await start();
    await first.converged();
    await first.gateway.stop();
    const [requests, before] = [hub.requests.length, await inventory(folders)];
    await rename(folders.cacheDir, `${folders.cacheDir}.away`);
    if (mountPoint) await mkdir(folders.cacheDir);

    const second = await start();
    await second.until("told", ({ conditions }) => conditions.some(({ reason }) => reason === "CacheUnreadable"));
    assert.equal(conditionOf(second, "Present"), "Unknown NotObserved");
    assert.equal(conditionOf(second, "Synced"), "Unknown NotObserved");
    assert.equal((await second.json("/readyz")).status, 503);
    assert.deepEqual([hub.requests.length, second.gateway.status().planned], [requests, []]);

    if (mountPoint) await rmdir(folders.cacheDir);
    await rename(`${folders.cacheDir}.away`, folders.cacheDir);
    await second.converged();
    assert.equal(await second.ask(alpha), answersOf("alpha").hello);
    assert.deepEqual(await inventory(folders), before);
    assert.equal(hub.requests.length, requests);
  });
}

test("where the models are gone for good, somebody's word has them pulled again", async (t) => {
  const { folders, start } = await pulled(t);
  const first = await start();
  await first.converged();
  await first.gateway.stop();
  await rename(folders.cacheDir, `${folders.cacheDir}.away`);
  const second = await start();
  const { conditions } = await second.until("told", (status) =>
    status.conditions.some(({ reason }) => reason === "CacheUnreadable"),
  );
  assert.match(conditions.find(({ reason }) => reason === "CacheUnreadable")?.message ?? "", /POST \/api\/reconcile/);
  assert.equal((await second.json("/api/reconcile?wait=true&cacheGone=true", { method: "POST" })).status, 200);
  assert.equal(await second.ask(alpha), answersOf("alpha").hello);
});
