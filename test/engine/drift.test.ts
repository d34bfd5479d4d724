// Drift: what somebody undoes by hand comes back with no one asking.
import assert from "node:assert/strict";
import { readFile, rename, rm, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway, untilLoaded } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { patchWith } from "../support/requests.ts";

/** A gateway with one model, its context size set. */
async function startSized(t: TestContext): Promise<{ gateway: TestGateway; alpha: string; presetPath: string }> {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${alpha}", ctxSize: 1024 }]\n`,
  });
  await gateway.converged();
  return { gateway, alpha, presetPath: join(folders.stateDir, "router.preset.ini") };
}

test("a preset section that is deleted by hand comes back and is in force", async (t) => {
  const { gateway, alpha, presetPath } = await startSized(t);
  const before = await readFile(presetPath, "utf8");
  await writeFile(presetPath, "[*]\noffline = true\n");
  await gateway.until("drifted", (status) => status.sync === "OutOfSync");
  await gateway.converged();
  assert.match(await readFile(presetPath, "utf8"), /ctx-size = 1024/);
  assert.match(before, /ctx-size = 1024/);
  await rm(presetPath);
  await gateway.until("drifted", (status) => status.sync === "OutOfSync");
  await gateway.converged();
  assert.equal(await readFile(presetPath, "utf8"), before);
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
});

test("a killed router is started again, and a request that comes meanwhile waits for it", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  const { router } = await gateway.converged();
  process.kill(router.pid ?? 0, "SIGKILL");
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  const after = await gateway.converged();
  assert.notEqual(after.router.pid, router.pid);
  assert.equal(after.router.crashes, 1);
});

test("a removed snapshot link comes back without a download, a removed blob is pulled again", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/pulled", { files: { "pulled-Q8_0.gguf": modelBytes(talkingModel("pulled")) } });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\nmodels: [acme/pulled:Q8_0]\n",
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  const requests = hub.requests.length;
  const commit = (await readFile(join(gateway.cacheDir, "models--acme--pulled", "refs", "main"), "utf8")).trim();
  const link = join(gateway.cacheDir, "models--acme--pulled", "snapshots", commit, "pulled-Q8_0.gguf");
  await unlink(link);
  await gateway.until("drifted", (status) => status.sync === "OutOfSync");
  await gateway.converged();
  assert.equal(await gateway.ask("acme/pulled:Q8_0"), answersOf("pulled").hello);
  const asked = hub.requests.slice(requests);
  assert.deepEqual(
    asked.filter(({ origin, method }) => origin === "storage" && method === "GET"),
    [],
  );

  // At once: what is found between the link's end and the blob's has the link made again.
  await rename(join(gateway.cacheDir, "models--acme--pulled"), join(gateway.root, "removed"));
  await gateway.until("drifted", (status) => status.sync === "OutOfSync");
  await gateway.converged();
  assert.equal(await gateway.ask("acme/pulled:Q8_0"), answersOf("pulled").hello);
});

test("suspend applies nothing until it is lifted, and keeps the router running with what is applied", async (t) => {
  const { gateway, alpha, presetPath } = await startSized(t);
  await gateway.json("/api/desired", patchWith({ suspend: true, models: { [alpha]: { ctxSize: 2048 } } }));
  const status = await gateway.until("suspended", (now) => now.observedGeneration === 2);
  assert.equal(status.health, "Suspended");
  assert.deepEqual(
    status.planned.map((action) => (action as { kind: string; held: string }).kind),
    ["preset.write"],
  );
  assert.match(await readFile(presetPath, "utf8"), /ctx-size = 1024/);
  await gateway.ask(alpha);
  process.kill(status.router.pid ?? 0, "SIGKILL");
  await gateway.until("another router", ({ router }) => router.connected && router.pid !== status.router.pid);
  // As after a crash without suspend: the next request has the model loaded again.
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  await untilLoaded(gateway, alpha);
  assert.match(await readFile(presetPath, "utf8"), /ctx-size = 1024/);
  assert.equal(gateway.gateway.status().health, "Suspended");
  await gateway.json("/api/desired?wait=true", patchWith({ suspend: null }));
  assert.match(await readFile(presetPath, "utf8"), /ctx-size = 2048/);
});

test("a gateway that starts suspended serves what is cached, and pulls nothing", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nsuspend: true\nmodels: ["${alpha}", "acme/absent:Q8_0"]\n`,
  });
  const status = await gateway.until("running", ({ router }) => router.connected);
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  assert.deepEqual(
    status.planned.map((action) => {
      const { kind, held, because } = action as { kind: string; held: string; because: string };
      return [kind, held, because];
    }),
    [["model.pull", "suspended", "suspend is set in the document"]],
  );
});
