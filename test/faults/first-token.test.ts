// An engine whose models are healthy and answer every request with 500, or not at all: no request is given to them.
import assert from "node:assert/strict";
import { chmod, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { eventsOf, startTestGateway, type TestGateway, untilLoaded } from "../support/gateway.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";

const id = "acme/a:Q8_0";

async function start(t: TestContext, flags: readonly string[] = []): Promise<TestGateway> {
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/a");
  const path = join(folders.root, "llama-server");
  const script = fileURLToPath(new URL("../support/lying-engine.js", import.meta.url));
  await writeFile(path, `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`);
  await chmod(path, 0o755);
  const yaml = `version: 1\nmodels: [{ id: "${id}", ctxSize: 512 }]\n`;
  const gateway = await startTestGateway(t, { folders, yaml, flags: ["--llama-server", path, ...flags] });
  await gateway.converged();
  return gateway;
}

function conditionOf(gateway: TestGateway, type: string): string {
  const model = gateway.gateway.status().models.find((each) => each.id === id);
  const found = model?.conditions.find((each) => each.type === type);
  return `${found?.status} ${found?.reason} ${found?.message}`;
}

test("a model that answers 500 is unloaded and in backoff, with the engine's words; one that answers says how long it took", async (t) => {
  const gateway = await start(t);
  const lies = join(gateway.stateDir, "lies");
  await writeFile(lies, "");
  const [refused, beside] = await Promise.all([0, 1].map(() => gateway.json("/v1/chat/completions", chatWith(id))));
  for (const answer of [refused, beside]) {
    assert.deepEqual([answer?.status, answer && codeOf(answer)], [500, "model_load_failed"]);
    assert.match(answer ? messageOf(answer) : "", /could not be loaded: it gives no token: Compute error\./);
  }
  await untilLoaded(gateway);
  const again = await gateway.json("/v1/chat/completions", chatWith(id));
  assert.deepEqual([again.status, codeOf(again)], [503, "load_failing"]);
  await gateway.until("told", () => conditionOf(gateway, "Loaded").startsWith("False LoadFailing"));
  assert.match(conditionOf(gateway, "Loaded"), /it gives no token: Compute error\. The next try/);
  await gateway.json("/v1/models/load", postWith({ model: id }));
  await gateway.until("tried", () => eventsOf(gateway.gateway, "model").length >= 4);

  await rm(lies);
  await gateway.json("/api/reconcile", { method: "POST" });
  assert.equal(await gateway.ask(id), `hello from ${id}`);
  await gateway.until("told", () => conditionOf(gateway, "Loaded").startsWith("True Loaded"));
  assert.match(conditionOf(gateway, "Loaded"), /Its first token took \d+ ms\.$/);
});

test("a model that says nothing is waited for as long as a load may take, and no change or stop waits for it", async (t) => {
  const gateway = await start(t, ["--load-timeout", "3", "--drain-timeout", "1"]);
  await writeFile(join(gateway.stateDir, "silent"), "");
  const refused = await gateway.json("/v1/chat/completions", chatWith(id));
  assert.deepEqual([refused.status, codeOf(refused)], [500, "model_load_failed"]);
  assert.match(messageOf(refused), /(no token|not loaded) within 3 s/);
  await gateway.json("/api/reconcile", { method: "POST" });
  const asked = gateway.json("/v1/chat/completions", chatWith(id));
  await gateway.until("asked for its token", () => conditionOf(gateway, "Loaded").startsWith("False Verifying"));
  await rm(join(gateway.stateDir, "silent"));
  // The drain does not outlast its time, and the next process answers.
  const changed = await gateway.json("/api/desired?wait=true", patchWith({ models: { [id]: { ctxSize: 2048 } } }));
  assert.equal(changed.status, 200);
  const answered = await asked;
  assert.equal(answered.status, 200, JSON.stringify(answered.body));
});

test("a context size with which a model gives no token is rolled back: a call that asked for it is told, another one is answered", async (t) => {
  const gateway = await start(t);
  assert.equal(await gateway.ask(id), `hello from ${id}`);
  const sized = await gateway.json("/v1/chat/completions", chatWith(id, "hi", { num_ctx: 1024 }));
  assert.deepEqual([sized.status, codeOf(sized)], [501, "not_supported"]);
  assert.match(
    messageOf(sized),
    /with ctx-size 1024 it could not be loaded \(it gives no token: Compute error\.\); it runs with ctx-size 512 as before/,
  );
  assert.equal(await gateway.ask(id), `hello from ${id}`);
  await gateway.until("told", () => conditionOf(gateway, "Applied").startsWith("False RolledBack"));
  const called = await gateway.json("/api/set-ctx-size", postWith({ model: id, ctx_size: 1024 }));
  assert.match(messageOf(called), /ctx-size 512 as before/);

  // It is remembered over a restart.
  await gateway.gateway.stop();
  const next = await startTestGateway(t, {
    folders: gateway,
    flags: ["--llama-server", gateway.settings.llamaServer ?? ""],
  });
  await next.until("told", () => conditionOf(next, "Applied").startsWith("False RolledBack"));
  assert.equal((await next.json("/api/desired?wait=true", patchWith({}))).status, 200);
  const preset = await readFile(join(next.stateDir, "router.preset.ini"), "utf8");
  assert.match(preset, /^ctx-size = 512$/m, "what failed is not tried once more at each start");
  assert.equal(await next.ask(id), `hello from ${id}`);
  const mended = await next.json("/v1/chat/completions", chatWith(id, "hi", { num_ctx: 2048 }));
  assert.equal(mended.status, 200);
  assert.equal(next.gateway.status().sync, "Synced");
});
