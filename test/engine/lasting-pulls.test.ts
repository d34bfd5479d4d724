// Pulls that outlive their client, an outage, an edit and its reverse; revisions; and tags that stay ambiguous.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cleanUp } from "../support/clean-up.ts";
import { makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { type HubRequest, startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import {
  documentModels,
  isPulling,
  leftovers,
  modelIds,
  pull,
  startWithHub,
  triesAtOnce,
} from "../support/own-pulls.ts";
import { streamPull } from "../support/pull-stream.ts";
import { patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

test("interface 4, Pull: with `keep` the model stays wanted when the client leaves, and an edit of the document ends its pull", async (t) => {
  const { hub, gateway } = await startWithHub(t);
  hub.addRepo("acme/big", { files: { "big-Q8_0.gguf": modelBytes(talkingModel("big")) } });
  const held = hub.throttle("big-Q8_0.gguf", 100_000);
  cleanUp(t, () => held.release());
  const leaving = new AbortController();
  const pulling = streamPull(gateway, "acme/big:Q8_0", { signal: leaving.signal, keep: true }).catch(
    (error: unknown) => error,
  );
  await held.reached;
  await until("a partial is there", async () =>
    (await leftovers(gateway.cacheDir)).some((name) => name.endsWith(".incomplete")),
  );
  leaving.abort();
  await pulling;
  assert.deepEqual(await documentModels(gateway), ["acme/big:Q8_0"]);
  assert.ok(isPulling(gateway));
  const refused = await gateway.json("/api/remove-model", postWith({ model: "acme/BIG:q8_0" }));
  assert.deepEqual([refused.status, (refused.body["error"] as { code: string }).code], [404, "model_not_found"]);
  assert.match(JSON.stringify(refused.body), /nothing of acme\/big:Q8_0 is here yet; taking it out of the document/);
  await gateway.json("/api/desired?wait=true", patchWith({ models: { "acme/big:Q8_0": null } }));
  await held.left;
  assert.deepEqual(await documentModels(gateway), []);
  assert.equal(isPulling(gateway), false);
  assert.deepEqual(await leftovers(gateway.cacheDir), []);
});

test("interface 4, Pull: what has begun is not given up for three failed tries", async (t) => {
  const { hub, gateway } = await startWithHub(t);
  hub.addRepo("acme/late", { files: { "late-Q8_0.gguf": modelBytes(talkingModel("late")) } });
  // The connection breaks in the middle of the file, and then the hub wants to be left alone, longer than a pull is patient.
  hub.dropAfter("late-Q8_0.gguf", 100_000);
  const goesOn = ({ range }: HubRequest): boolean => range !== undefined && !range.startsWith("bytes=0-");
  hub.failNext({ status: 503, match: (request) => request.origin === "storage" && goesOn(request) });
  const headers = { "retry-after": "3600" };
  hub.failNext({ status: 429, headers, times: 4, match: (request) => request.origin === "hub" && goesOn(request) });
  const failures = triesAtOnce(t, gateway);
  const answered = await pull(gateway, "acme/late:Q8_0");
  assert.deepEqual([answered.status, answered.body], [200, { status: "success" }]);
  assert.equal(failures().length, 4, failures().join("\n"));
  assert.equal(hub.sentBytes("late-Q8_0.gguf"), modelBytes(talkingModel("late")).length);
});

test("interface 4, Pull: a hub that goes away in the middle ends the pull, and its client hears from it until then", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/half", { files: { "half-Q8_0.gguf": modelBytes(talkingModel("half")) } });
  hub.dropAfter("half-Q8_0.gguf", 100_000);
  const headers = { "retry-after": "3600" };
  hub.failNext({ status: 429, headers, times: 99, match: ({ range }) => /^bytes=(?!0-)/.test(range ?? "") });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\n",
    environment: { HF_ENDPOINT: hub.endpoint },
    pulls: { pullPatienceMs: 8_000, pullRepeatMs: 50 },
  });
  // Tries in between, which bring nothing: each goes over what is here already.
  let tries = 0;
  const unfollow = gateway.gateway.journal.follow(({ type }) => {
    if (type === "action.failed" && ++tries < 5) void gateway.json("/api/reconcile", { method: "POST" });
  });
  cleanUp(t, unfollow);
  const records = await streamPull(gateway, "acme/half:Q8_0");
  assert.equal(tries, 5);
  assert.match(records.at(-1)?.error ?? "", /the hub asks to wait 3600 s/);
  const said = records.filter(({ status }) => /asks to wait.*\. Will retry in 3600 s$/.test(status ?? ""));
  assert.ok(said.length > 10, JSON.stringify(records));
  assert.deepEqual(await documentModels(gateway), []);
  const isEmpty = (files: readonly string[]): boolean => files.length === 0;
  // A folder may go while it is read.
  await until("nothing is left", () => leftovers(gateway.cacheDir).then(isEmpty, () => false));
});

test("interface 4, Pull: a removed model that the file names comes back as the file has it", async (t) => {
  const folders = await makeFolders(t);
  await writeFile(join(folders.stateDir, "mine-Q8_0.gguf"), modelBytes(talkingModel("mine")));
  const yaml = "version: 1\nmodels: [{ id: local/mine-GGUF:Q8_0, source: ./mine-Q8_0.gguf, ctxSize: 512 }]\n";
  const gateway = await startTestGateway(t, { folders, yaml });
  await gateway.converged();
  const [before] = (await documentModels(gateway)) as unknown[];
  await gateway.json("/api/remove-model", postWith({ model: "local/mine-GGUF:Q8_0" }));
  assert.deepEqual(await documentModels(gateway), []);
  assert.deepEqual((await pull(gateway, "local/mine-GGUF:Q8_0")).body, { status: "success" });
  assert.deepEqual(await documentModels(gateway), [before]);
  assert.equal(await gateway.ask("local/mine-GGUF:Q8_0"), answersOf("mine").hello);
});

test("another revision in the document is pulled and served, back and forth, beside what main has", async (t) => {
  const hub = await startLoopbackHub(t);
  const commits = ["one", "two", "main"].map((name, at) => {
    const files = { "rev-Q8_0.gguf": modelBytes(talkingModel(name)) };
    return at === 0 ? hub.addRepo("acme/rev", { files }) : hub.updateRepo("acme/rev", { files });
  });
  const gateway = await startTestGateway(t, {
    yaml: "version: 1\nmodels: [acme/rev:Q8_0]\n",
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  assert.equal(await gateway.ask("acme/rev:Q8_0"), answersOf("main").hello);
  for (const [revision, name] of [
    [commits[0], "one"],
    [commits[1], "two"],
    [commits[0], "one"],
    ["main", "main"],
    [null, "main"],
  ] as const) {
    await gateway.json("/api/desired?wait=true", patchWith({ models: { "acme/rev:Q8_0": { revision } } }));
    assert.equal(await gateway.ask("acme/rev:Q8_0"), answersOf(name).hello, String(revision));
    assert.deepEqual(await modelIds(gateway), ["acme/rev:Q8_0"]);
  }
});

test("a model that is taken out of the document and put back at once is pulled all the same", async (t) => {
  const { hub, gateway } = await startWithHub(t);
  const bytes = Buffer.concat([modelBytes(talkingModel("four")), Buffer.alloc(5_000_000, "padding ")]);
  hub.addRepo("acme/four-GGUF", { files: { "four-Q4_0.gguf": bytes } });
  hub.pace("four-Q4_0.gguf", 4_000_000);
  const naming = (model: object | null) => patchWith({ models: { "acme/four-GGUF:Q4_0": model } });
  await gateway.json("/api/desired", naming({}));
  await until("half of it has come", () => hub.sentBytes("four-Q4_0.gguf") > 3_000_000);
  for (const model of [null, {}]) assert.equal((await gateway.json("/api/desired", naming(model))).status, 200);
  await gateway.converged();
  assert.equal(await gateway.ask("acme/four-GGUF:Q4_0"), answersOf("four").hello);
});
