// Pulls that the document asks for, end to end: the router serves what was pulled with no one restarting anything.
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { patchWith } from "../support/requests.ts";

function condition(gateway: TestGateway, subject: string, type: string): string | undefined {
  const status = gateway.gateway.status();
  const list =
    subject === "gateway" ? status.conditions : status.models.find((model) => model.id === subject)?.conditions;
  const found = list?.find((entry) => entry.type === type);
  return found && `${found.status} ${found.reason}`;
}

async function partials(cacheDir: string): Promise<string[]> {
  return (await readdir(cacheDir, { recursive: true })).filter((name) => name.endsWith(".incomplete"));
}

test("interface 2, Model identifier: short tags, a second quant, an odd name: each is pulled, listed and answers", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/many-GGUF", {
    files: {
      "many-Q4_K_M.gguf": modelBytes(talkingModel("four")),
      "many-Q8_0.gguf": modelBytes(talkingModel("eight")),
      "deep/many-Q6_K.gguf": modelBytes(talkingModel("six")),
      "README.md": Buffer.from("read me"),
    },
  });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\nmodels: [acme/many-GGUF:Q4_K_M]\n",
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  assert.equal(await gateway.ask("acme/many-GGUF:Q4_K_M"), answersOf("four").hello);
  const { body } = await gateway.json(
    "/api/desired?wait=true",
    patchWith({ models: { "acme/many-GGUF:Q8_0": {}, "acme/many-GGUF:Q6_K": { ctxSize: 1024 } } }),
  );
  assert.equal(body["converged"], true);
  assert.equal(await gateway.ask("acme/many-GGUF:Q8_0"), answersOf("eight").hello);
  assert.equal(await gateway.ask("acme/many-GGUF:Q6_K"), answersOf("six").hello);
  const models = (await gateway.json("/beta/v1/models")).body["data"] as { id: string; context_length: number }[];
  assert.deepEqual(
    models.map((model) => [model.id, model.context_length]),
    [
      ["acme/many-GGUF:Q4_K_M", 8192],
      ["acme/many-GGUF:Q8_0", 8192],
      ["acme/many-GGUF:many-Q6_K", 1024],
    ],
  );
  assert.equal(condition(gateway, "acme/many-GGUF:Q6_K", "Applied"), "True InForce");
  assert.deepEqual(await partials(gateway.cacheDir), []);
});

test("what cannot be pulled is said by its cause, stalls nothing else, and is tried again when the document changes", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/gated", { files: { "gated-Q8_0.gguf": modelBytes(talkingModel("gated")) }, gated: true });
  hub.addRepo("acme/other", { files: { "other-Q8_0.gguf": modelBytes(talkingModel("other")) } });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\nmodels: [acme/gated:Q8_0, acme/missing:Q8_0, acme/other:Q2_K, acme/other:Q8_0]\n",
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.until(
    "the good one",
    () =>
      condition(gateway, "acme/other:Q8_0", "Applied") === "True InForce" &&
      condition(gateway, "gateway", "Stalled") === "True HubDenied",
  );
  assert.equal(await gateway.ask("acme/other:Q8_0"), answersOf("other").hello);
  assert.equal(condition(gateway, "acme/gated:Q8_0", "Present"), "False HubDenied");
  assert.equal(condition(gateway, "acme/missing:Q8_0", "Present"), "False HubNotFound");
  assert.equal(condition(gateway, "acme/other:Q2_K", "Present"), "False QuantNotFound");
  assert.equal(condition(gateway, "gateway", "Ready"), "False Stalled");
  const readiness = await gateway.json("/readyz");
  assert.deepEqual([readiness.status, readiness.body["reason"]], [200, "Serving"]);
  const { status, body } = await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.equal(status, 403, JSON.stringify(body));
  const fixed = await gateway.json(
    "/api/desired?wait=true",
    patchWith({ models: { "acme/gated:Q8_0": null, "acme/missing:Q8_0": null, "acme/other:Q2_K": null } }),
  );
  assert.deepEqual([fixed.status, fixed.body["converged"]], [200, true]);
  assert.equal(condition(gateway, "gateway", "Ready"), "True Serving");
});

test("a hub that is away is said, and the pull goes on when it is back", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/late", { files: { "late-Q8_0.gguf": modelBytes(talkingModel("late")) } });
  hub.failNext({ status: 503, times: 1 });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\nmodels: [acme/late:Q8_0]\n",
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.until(
    "unreachable",
    () =>
      condition(gateway, "gateway", "HubReachable") === "False HubUnreachable" &&
      condition(gateway, "gateway", "Reconciling") === "True ProgressingWithRetry",
  );
  await gateway.json("/api/reconcile?wait=true", { method: "POST" });
  assert.equal(condition(gateway, "gateway", "HubReachable"), "True Answered");
  assert.equal(await gateway.ask("acme/late:Q8_0"), answersOf("late").hello);
});

test("a pull that the document no longer wants is given up, and leaves nothing; a context change does not wait for it", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/big", { files: { "big-Q8_0.gguf": modelBytes(talkingModel("big")) } });
  hub.addRepo("acme/small", { files: { "small-Q8_0.gguf": modelBytes(talkingModel("small")) } });
  const held = hub.throttle("big-Q8_0.gguf", 100_000);
  cleanUp(t, () => held.release());
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\nmodels: [acme/small:Q8_0]\n",
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  await gateway.json("/api/desired", patchWith({ models: { "acme/big:Q8_0": {} } }));
  await held.reached;
  await gateway.json("/api/desired", patchWith({ models: { "acme/small:Q8_0": { ctxSize: 1024 } } }));
  await gateway.until(
    "in force beside the pull",
    () =>
      condition(gateway, "acme/small:Q8_0", "Applied") === "True InForce" &&
      gateway.gateway.status().observedGeneration === 3,
  );
  // The size may be in force a moment before the reload that put it there has answered.
  await gateway.until("nothing runs but the pull", ({ running }) =>
    running.every((action) => (action as { kind: string }).kind === "model.pull"),
  );
  while ((await partials(gateway.cacheDir)).length === 0) await new Promise(setImmediate);
  await gateway.json("/api/desired?wait=true", patchWith({ models: { "acme/big:Q8_0": null } }));
  assert.deepEqual(await partials(gateway.cacheDir), []);
  assert.deepEqual(gateway.gateway.status().running, []);
});

test("prune deletes what this gateway pulled and nothing else, and an emptied list deletes nothing", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/pulled", { files: { "pulled-Q8_0.gguf": modelBytes(talkingModel("pulled")) } });
  hub.addRepo("acme/kept", { files: { "kept-Q8_0.gguf": modelBytes(talkingModel("kept")) } });
  const folders = await makeFolders(t);
  const foreign = await cacheTalker(folders, "acme/foreign");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nprune: true\npruneAfter: 0\nmodels: [acme/pulled:Q8_0, { id: "acme/kept:Q8_0", keep: true }, "${foreign}"]\n`,
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  await gateway.writeConfig("version: 1\nprune: true\npruneAfter: 0\nmodels: []\n");
  const emptied = await gateway.until(
    "applied",
    (status) => status.observedGeneration === 2 && status.sync === "Synced",
  );
  assert.deepEqual(emptied.models.map((model) => model.id).sort(), [
    "acme/foreign:Q8_0",
    "acme/kept:Q8_0",
    "acme/pulled:Q8_0",
  ]);
  await gateway.writeConfig(`version: 1\nprune: true\npruneAfter: 0\nallowEmpty: true\nmodels: []\n`);
  const pruned = await gateway.until("pruned", (status) => status.observedGeneration === 3 && status.sync === "Synced");
  assert.deepEqual(pruned.models.map((model) => model.id).sort(), ["acme/foreign:Q8_0", "acme/kept:Q8_0"]);
  assert.ok(!(await readdir(gateway.cacheDir)).includes("models--acme--pulled"));
  const models = (await gateway.json("/beta/v1/models")).body["data"] as { id: string }[];
  assert.deepEqual(
    models.map((model) => model.id),
    ["acme/foreign:Q8_0", "acme/kept:Q8_0"],
  );
});
