// RPC mode in its first form: the workers that the document names are in force, without a restart, and go again.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cacheTalker, loadedIds, makeFolders, startTestGateway } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { startWorker } from "../support/rpc-worker.ts";

test("models run with the workers, one at a time, and without them again", async (t) => {
  const folders = await makeFolders(t);
  const [first, second] = [await cacheTalker(folders, "acme/first"), await cacheTalker(folders, "acme/second")];
  const worker = await startWorker(t);
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nrpc: { mode: rpc, workers: ["${worker}"] }\n`,
  });
  const { rpc, router } = await gateway.converged();
  assert.deepEqual(rpc, { mode: "rpc", workers: [{ address: worker }] });
  assert.match(
    await readFile(join(folders.stateDir, "router.preset.ini"), "utf8"),
    new RegExp(`^rpc = ${worker}$`, "m"),
  );
  assert.equal(await gateway.ask(first), answersOf("acme/first").hello);
  assert.equal(await gateway.ask(second), answersOf("acme/second").hello);
  assert.deepEqual(await loadedIds(gateway), [second]);

  await gateway.writeConfig("version: 1\n");
  const single = await gateway.until("single", (status) => status.rpc.mode === "single" && status.sync === "Synced");
  assert.equal(single.router.pid, router.pid);
  assert.equal(await gateway.ask(first), answersOf("acme/first").hello);
});
