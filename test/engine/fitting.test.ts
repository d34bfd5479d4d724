// Where the engine has main memory alone it fits nothing but a context that is not set, so it need not look.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { listDevices } from "../../src/engines/llama/devices.ts";
import { llamaServer } from "../support/engine.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { modelsOf, startTestGateway } from "../support/gateway.ts";
import { patchWith } from "../support/requests.ts";

/** Whether this router's models are told to fit nothing, by the environment that they have from it. */
async function isUnfitted(pid: number | null): Promise<boolean> {
  return (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0").includes("LLAMA_ARG_FIT=off");
}

test("models fit nothing while each has a context; without a default those without one fit again, and nothing else ends", async (t) => {
  const isAlone = (await listDevices(await llamaServer(), process.env)).length === 0;
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/fitting");
  const sized = await cacheTalker(folders, "acme/sized");
  const yaml = `version: 1\ncontext: { default: 2048 }\nmodels: [{ id: "${sized}", ctxSize: 1024 }]\n`;
  const gateway = await startTestGateway(t, { folders, yaml });
  const preset = () => readFile(join(folders.stateDir, "router.preset.ini"), "utf8");
  const { pid } = (await gateway.converged()).router;
  await gateway.ask(model);
  assert.equal(await isUnfitted(pid), isAlone);
  assert.doesNotMatch(await preset(), /^fit/m);
  await gateway.ask(sized);
  const before = (await modelsOf(gateway)).get(sized)?.runtime?.pid;
  assert.ok(before);

  assert.equal((await gateway.json("/api/desired", patchWith({ context: null }))).status, 200);
  await gateway.ask(model);
  const settled = await gateway.converged();
  assert.equal(/^fit = on$/m.test(await preset()), isAlone);
  assert.deepEqual([settled.router.pid, (await modelsOf(gateway)).get(sized)?.runtime?.pid], [pid, before]);

  process.kill(pid ?? 0, "SIGKILL");
  await gateway.until("another router", ({ router }) => router.pid !== null && router.pid !== pid);
  assert.equal(await isUnfitted((await gateway.converged()).router.pid), false);
  await gateway.ask(model);
  assert.doesNotMatch(await preset(), /^fit/m);
});
