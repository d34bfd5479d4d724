// The typed client, by the name under which companion apps import it, against a running gateway that needs a license key.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { createGatewayClient, type GatewayClient, GatewayClientError } from "model-gateway/client";
import { cleanUp } from "../support/clean-up.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { eventsOf, startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { until } from "../support/scratch.ts";

const licenseKey = "client-key-8f1d3a7c5b9e4f02a6d8";

async function failure(run: Promise<unknown>): Promise<GatewayClientError> {
  try {
    await run;
  } catch (error) {
    assert.ok(error instanceof GatewayClientError, String(error));
    return error;
  }
  assert.fail("it did not fail");
}

function isLoaded(client: GatewayClient, id: string): Promise<boolean | undefined> {
  return client.models().then((models) => models.find((model) => model.id === id)?.loaded);
}

test("the client", async (t) => {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/new-GGUF", {
    files: { "new-Q8_0.gguf": modelBytes(talkingModel("new")), "README.md": Buffer.from("read me") },
    downloads: 12,
    likes: 3,
  });
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${model}"]\n`,
    environment: { HF_ENDPOINT: hub.endpoint, GATEWAY_LICENSE_KEY: licenseKey },
  });
  await gateway.converged();
  const client = createGatewayClient({ baseUrl: `${gateway.url}/`, licenseKey });

  await t.test("without a key: a short status, the hub, and errors with a code and a hint", async () => {
    const stranger = createGatewayClient({ baseUrl: gateway.url });
    const status = await stranger.status();
    assert.deepEqual([status.router.connected, status.rpc.mode, "sync" in status], [true, "single", false]);
    assert.equal((await stranger.searchHub("new")).length, 1);
    const error = await failure(stranger.models());
    assert.deepEqual([error.status, error.code], [401, "unauthorized"]);
    const own = await failure(stranger.plan());
    assert.match(own.hint ?? "", /license key/);
  });

  await t.test("status, plan and models", async () => {
    const status = await client.status();
    assert.ok("sync" in status);
    assert.deepEqual([status.sync, status.health], ["Synced", "Healthy"]);
    assert.equal((await client.plan()).converged, true);
    assert.deepEqual(
      (await client.models()).map(({ id, loaded }) => [id, loaded]),
      [[model, false]],
    );
  });

  await t.test("a context size, in force when the call resolves", async () => {
    assert.deepEqual(await client.setContextSize(model, 1024), { ok: true, model, ctx_size: 1024 });
    assert.equal((await client.models())[0]?.context_length, 1024);
    const error = await failure(client.setContextSize(model, -1));
    assert.deepEqual([error.status, error.code], [400, "invalid_request"]);
    assert.equal((await failure(client.setContextSize("acme/nothing:Q8_0", 512))).code, "model_not_found");
  });

  await t.test("the document: read, planned, changed on a condition", async () => {
    const before = await client.desired.get();
    assert.equal(before.document.version, 1);
    const plan = await client.desired.planPatch({ context: { default: 2048 } });
    assert.deepEqual([plan.dryRun, plan.actions.map(({ kind }) => kind)], [true, ["preset.write"]]);
    const after = await client.desired.patch({ context: { default: 2048 } }, { etag: before.etag, wait: true });
    assert.deepEqual([after.document.context, after.converged], [{ default: 2048 }, true]);
    const late = await failure(client.desired.patch({ prune: true }, { etag: before.etag }));
    assert.deepEqual([late.status, late.code], [412, "precondition_failed"]);
    assert.deepEqual((await client.desired.put(before.document, { etag: after.etag })).document, before.document);
    assert.equal((await client.reconcile({ wait: true })).converged, true);
  });

  await t.test("the document: applied as a file, reset, and back to an earlier generation", async () => {
    const before = await client.desired.get();
    const text = "version: 1\ncontext: { default: 1536 }\n";
    assert.equal((await client.desired.planApply(text)).dryRun, true);
    const applied = await client.desired.apply(Buffer.from(text), { revision: "3f2a9c1", wait: true });
    assert.deepEqual([applied.document.context, applied.applied?.revision], [{ default: 1536 }, "3f2a9c1"]);
    await client.desired.patch({ pruneAfter: 61 });
    assert.equal((await client.desired.reset(["pruneAfter"])).document.pruneAfter, undefined);
    const back = await client.history.rollback(before.generation, { wait: true });
    assert.deepEqual(back.document, before.document);
    const { entries } = await client.history.list();
    assert.equal(entries[0]?.by, `http:POST /api/history/${before.generation}/rollback`);
    assert.deepEqual((await client.history.get(back.generation)).document, before.document);
    assert.equal((await failure(client.history.get(999))).code, "generation_not_found");
  });

  await t.test("the document as text, on a condition; the plan of a rollback", async () => {
    const { yaml, etag } = await client.desired.text();
    assert.equal(yaml, `version: 1\nmodels:\n  - id: ${model}\n    ctxSize: 1024\n`);
    const { generation } = await client.desired.get();
    const text = yaml.replace("1024", "512");
    assert.deepEqual((await client.desired.planText(text)).steps[0]?.changes, [
      { subject: model, field: "ctx-size", from: "1024", to: "512" },
    ]);
    await client.desired.putText(text, { etag, wait: true });
    assert.equal((await failure(client.desired.putText(yaml, { etag }))).code, "precondition_failed");
    assert.match((await failure(client.desired.planText("version: 2\n"))).message, /^line 1, column 10: version: /);
    assert.equal((await client.history.planRollback(generation)).steps[0]?.changes[0]?.to, "1024");
    await client.history.rollback(generation, { wait: true });
  });

  await t.test("a chat in pieces, requests in flight, a load", async () => {
    const pieces: string[] = [];
    const messages = [{ role: "user", content: "hi" }] as const;
    for await (const { content } of client.chat({ model, messages })) pieces.push(content);
    assert.equal(pieces.join(""), answersOf("acme/alpha").hello);
    // The client has read its last event before the gateway has ended the request.
    await until("no request in flight", async () => (await client.requests.list()).length === 0);
    assert.equal(await client.requests.cancel(1), false);
    await client.eject(model);
    await client.load(model);
    await until("loaded", () => isLoaded(client, model));
    await client.eject(model);
    const unknown = client.chat({ model: "acme/nothing:Q8_0", messages: [] });
    assert.equal((await failure(unknown[Symbol.asyncIterator]().next())).code, "model_not_found");
  });

  await t.test("the hub", async () => {
    assert.deepEqual(await client.searchHub("new", { limit: 5 }), [{ id: "acme/new-GGUF", downloads: 12, likes: 3 }]);
    const files = await client.repoFiles("acme/new-GGUF");
    assert.deepEqual(files, [{ path: "new-Q8_0.gguf", size: modelBytes(talkingModel("new")).length }]);
    assert.equal((await failure(client.repoFiles("acme/none"))).code, "hub_not_found");
  });

  await t.test("a pull with its progress and its events, then an eject and a removal", async () => {
    const seen: string[] = [];
    const following = new AbortController();
    let reports = 0;
    const finished = new Promise<string>((resolve) => {
      void (async () => {
        for await (const { type, data } of client.events({ signal: following.signal, since: "0" })) {
          if (data["kind"] !== "model.pull") continue;
          if (type === "action.progress") reports++;
          if (type === "action.finished") resolve(data.at);
        }
      })();
    });
    await client.pull("acme/new-GGUF:Q8_0", { onProgress: ({ status }) => seen.push(status) });
    assert.ok(Date.parse(await finished) > 0);
    following.abort();
    // Only the last one is kept for later readers: all of them would push out other events.
    assert.ok(reports > 1, `${reports} reports of progress`);
    assert.equal(eventsOf(gateway.gateway, "action.progress").length, 1);
    assert.deepEqual([seen[0], seen.at(-1)], ["pulling manifest", "success"]);
    const id = "acme/new-GGUF:Q8_0";
    assert.equal(await isLoaded(client, id), false);
    await fetch(`${gateway.url}/api/generate`, {
      method: "POST",
      headers: { authorization: `Bearer ${licenseKey}` },
      body: JSON.stringify({ model: id }),
    });
    assert.equal(await isLoaded(client, id), true);
    assert.deepEqual(await client.eject(id), { ok: true, model: id });
    assert.equal(await isLoaded(client, id), false);
    const removed = await client.remove(id);
    assert.ok(removed.freed_bytes > 0 && removed.deleted_files > 0, JSON.stringify(removed));
    assert.equal(await isLoaded(client, id), undefined);
    const gone = await failure(client.remove(id));
    assert.deepEqual([gone.status, gone.code], [404, "model_not_found"]);
    const missing = await failure(client.pull("acme/none:Q8_0"));
    assert.ok(missing.message.includes("acme/none"), missing.message);
  });

  await t.test("RPC mode and workers", async () => {
    const worker = "127.0.0.1:1";
    assert.deepEqual((await client.rpc.addWorkers([worker])).workers, [worker]);
    assert.deepEqual((await client.rpc.removeWorkers([worker])).workers, []);
    assert.equal((await client.rpc.setMode("single")).mode, "single");
  });

  await t.test("speech that is off says so", async () => {
    const calls = [
      client.speech.speak({ input: "hi", voice: "en_US-lessac-medium" }),
      client.speech.transcribe(new Blob(["no audio"])),
      client.speech.voices.cached(),
      client.speech.voices.search("en"),
      client.speech.transcriptionModels.cached(),
      client.speech.transcriptionModels.search("base"),
    ];
    const errors = await Promise.all(calls.map(failure));
    assert.deepEqual(
      errors.map(({ status, code }) => [status, code]),
      calls.map(() => [503, "speech_off"]),
    );
  });
});

/** Answers every request with what `reply` writes. */
async function startStandIn(
  t: TestContext,
  reply: (path: string) => { status: number; text: string; cut?: boolean },
): Promise<string> {
  const server = createServer((request, response) => {
    const { status, text, cut } = reply(request.url ?? "");
    response.writeHead(status).write(text);
    if (cut) setImmediate(() => response.destroy());
    else response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUp(t, () => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("what is no whole answer of a gateway", async (t) => {
  const texts: Readonly<Record<string, { status: number; text: string; cut?: boolean }>> = {
    "/status": { status: 200, text: "<html>a proxy</html>" },
    "/v1/models": { status: 502, text: "<html>bad gateway</html>" },
    "/api/plan": { status: 200, text: '{"generation":', cut: true },
    "/api/pull": { status: 200, text: '{"status":"pulling manifest"}\n', cut: true },
  };
  const client = createGatewayClient({
    baseUrl: await startStandIn(t, (path) => texts[path] ?? { status: 404, text: "" }),
  });

  const errors = await Promise.all(
    [client.status(), client.models(), client.plan(), client.pull("x"), client.eject("x")].map(failure),
  );
  assert.deepEqual(
    errors.map(({ status, code }) => [status, code]),
    [
      [200, null],
      [502, null],
      [0, "unreachable"],
      [0, "unreachable"],
      [404, null],
    ],
  );
  assert.match(errors[1]?.message ?? "", /bad gateway/);
});

test("a pull whose answer ends early, one that fails late, and an abort", async (t) => {
  const texts = ['{"status":"pulling manifest"}\n', '{"status":"pulling manifest"}\n{"error":"no room"}\n'];
  const client = createGatewayClient({
    baseUrl: await startStandIn(t, () => ({ status: 200, text: texts.shift() ?? "" })),
  });
  assert.equal((await failure(client.pull("x"))).code, "cut");
  const late = await failure(client.pull("x"));
  assert.deepEqual([late.status, late.message], [200, "no room"]);
  await assert.rejects(client.status({ signal: AbortSignal.abort() }), { name: "AbortError" });
  const events: unknown[] = [];
  for await (const event of client.events({ signal: AbortSignal.abort() })) events.push(event);
  assert.deepEqual(events, []);
});

test("nothing listens", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const error = await failure(createGatewayClient({ baseUrl: `http://127.0.0.1:${port}` }).status());
  assert.deepEqual([error.status, error.code], [0, "unreachable"]);
});
