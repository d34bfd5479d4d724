// The gateway's own calls on models, on the real engine: what the call answers is what the router then has.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { loadedIds, startTestGateway, untilLoaded } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { codeOf, contextLengths } from "../support/own-calls.ts";
import { patchWith, postWith } from "../support/requests.ts";
import { startWorker } from "../support/rpc-worker.ts";

test("interface 4, Context size: the size is in the preset and in force when the call answers", async (t) => {
  const folders = await makeFolders(t);
  const [alpha, beta] = [await cacheTalker(folders, "acme/alpha"), await cacheTalker(folders, "acme/beta")];
  const gateway = await startTestGateway(t, { folders, yaml: `version: 1\nmodels: ["${alpha}"]\n` });
  await gateway.converged();

  await t.test("of a model that the document names", async () => {
    const { status, body } = await gateway.json("/api/set-ctx-size", postWith({ model: alpha, ctx_size: 1024 }));
    assert.deepEqual([status, body], [200, { ok: true, model: alpha, ctx_size: 1024 }]);
    assert.deepEqual(await contextLengths(gateway), { [alpha]: 1024, [beta]: 8192 });
    assert.match(await readFile(join(folders.stateDir, "router.preset.ini"), "utf8"), /ctx-size = 1024/);
    await gateway.ask(alpha);
    await gateway.until("loaded with it", ({ models }) =>
      models.some(
        ({ id, conditions }) =>
          id === alpha &&
          conditions.some(({ message }) => message.startsWith("It is loaded with 1024 tokens of context.")),
      ),
    );
  });

  await t.test("of one that it does not name: it is adopted, by its short name too", async () => {
    const { status, body } = await gateway.json("/api/set-ctx-size", postWith({ model: "beta", ctx_size: 512 }));
    assert.deepEqual([status, body], [200, { ok: true, model: beta, ctx_size: 512 }]);
    assert.deepEqual(await contextLengths(gateway), { [alpha]: 1024, [beta]: 512 });
    const { document } = (await gateway.json("/api/desired")).body;
    assert.deepEqual(document, {
      version: 1,
      models: [
        { id: alpha, ctxSize: 1024 },
        { id: beta, ctxSize: 512 },
      ],
    });
  });

  await t.test("the same again makes no new document", async () => {
    const { generation } = gateway.gateway.status();
    const { status } = await gateway.json("/api/set-ctx-size", postWith({ model: alpha, ctx_size: 1024 }));
    assert.deepEqual([status, gateway.gateway.status().generation], [200, generation]);
  });

  await t.test("many at once are one change", async () => {
    const asked = [alpha, beta, alpha, beta, alpha, beta].map((model) =>
      gateway.json("/api/set-ctx-size", postWith({ model, ctx_size: 2048 })),
    );
    for (const { status, body } of await Promise.all(asked)) assert.deepEqual([status, body["ctx_size"]], [200, 2048]);
    assert.deepEqual(await contextLengths(gateway), { [alpha]: 2048, [beta]: 2048 });
  });

  await t.test("unknown models, sizes that cannot be, and a suspended document are refused", async () => {
    const unknown = await gateway.json("/api/set-ctx-size", postWith({ model: "acme/alpah:Q8_0", ctx_size: 512 }));
    assert.deepEqual([unknown.status, codeOf(unknown)], [404, "model_not_found"]);
    assert.match(JSON.stringify(unknown.body), /did you mean acme\/alpha:Q8_0/);
    const large = await gateway.json("/api/set-ctx-size", postWith({ model: alpha, ctx_size: 8193 }));
    assert.deepEqual([large.status, codeOf(large)], [400, "invalid_request"]);
    assert.match(JSON.stringify(large.body), /8192 tokens that acme\/alpha:Q8_0 was trained for/);
    await gateway.json("/api/desired", patchWith({ suspend: true }));
    const held = await gateway.json("/api/set-ctx-size", postWith({ model: alpha, ctx_size: 256 }));
    assert.deepEqual([held.status, codeOf(held)], [409, "suspended"]);
    assert.equal((await contextLengths(gateway))[alpha], 2048);
    await gateway.json("/api/desired?wait=true", patchWith({ suspend: null }));
    assert.equal((await contextLengths(gateway))[alpha], 256);
  });
});

test("interface 4, Context size: a model under a name of its own in the document keeps that name and its other fields", async (t) => {
  const folders = await makeFolders(t);
  await cacheModel(folders, "acme/odd", "odd-Q6_K.gguf", modelBytes(talkingModel("odd")));
  const gateway = await startTestGateway(t, {
    folders,
    yaml: 'version: 1\nmodels: [{ id: "acme/odd:Q6_K", preset: { threads: 1 } }]\n',
  });
  await gateway.converged();
  const { status, body } = await gateway.json(
    "/api/set-ctx-size",
    postWith({ model: "acme/odd:odd-Q6_K", ctx_size: 512 }),
  );
  assert.deepEqual([status, body["model"]], [200, "acme/odd:odd-Q6_K"]);
  assert.deepEqual(((await gateway.json("/api/desired")).body["document"] as { models: unknown }).models, [
    { id: "acme/odd:Q6_K", preset: { threads: 1 }, ctxSize: 512 },
  ]);
  assert.deepEqual(await contextLengths(gateway), { "acme/odd:odd-Q6_K": 512 });
});

test("interface 4, RPC: workers come and go, and the mode is in force when the call answers", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const worker = await startWorker(t);
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const preset = (): Promise<string> => readFile(join(folders.stateDir, "router.preset.ini"), "utf8");
  const call = async (path: string, body: object): Promise<unknown> => {
    const { status, body: answer } = await gateway.json(`/api/rpc/${path}`, postWith(body));
    assert.equal(status, 200, JSON.stringify(answer));
    const { notInUse, ...rest } = answer as { notInUse: { address: string }[] };
    unused = notInUse.map(({ address }) => address);
    return rest;
  };
  let unused: string[] = [];
  const away = "worker.invalid:50052";

  assert.deepEqual(await call("workers", { worker }), { ok: true, mode: "single", workers: [worker] });
  assert.deepEqual(await call("workers", { workers: [away, worker, "WORKER.invalid:50052"] }), {
    ok: true,
    mode: "single",
    workers: [worker, away],
  });
  assert.deepEqual(unused, [away]);
  assert.doesNotMatch(await preset(), /rpc/);
  assert.deepEqual(await call("workers/remove", { workers: [away, "10.0.0.1:1"] }), {
    ok: true,
    mode: "single",
    workers: [worker],
  });
  assert.deepEqual(await call("mode", { mode: "rpc" }), { ok: true, mode: "rpc", workers: [worker] });
  assert.match(await preset(), new RegExp(`^rpc = ${worker}$`, "m"));
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  const { generation, rpc } = gateway.gateway.status();
  assert.deepEqual([rpc.mode, rpc.workers.map(({ address }) => address)], ["rpc", [worker]]);
  await call("mode", { mode: "rpc" });
  await call("workers", { worker });
  assert.equal(gateway.gateway.status().generation, generation);

  assert.deepEqual(await call("mode", { mode: "single" }), { ok: true, mode: "single", workers: [worker] });
  assert.doesNotMatch(await preset(), /rpc/);
  await call("mode", { mode: "rpc" });
  // With the last worker goes what the mode is for.
  assert.deepEqual(await call("workers/remove", { worker }), { ok: true, mode: "single", workers: [] });
  assert.doesNotMatch(await preset(), /rpc/);
  assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
});

test("interface 4, Eject: the model is unloaded when the call answers, and its files stay", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  await gateway.ask(alpha);
  await untilLoaded(gateway, alpha);
  const { status, body } = await gateway.json("/api/eject-model", postWith({ model: "alpha" }));
  assert.deepEqual([status, body], [200, { ok: true, model: alpha }]);
  assert.deepEqual(await loadedIds(gateway), []);
  const again = await gateway.json("/api/eject-model", postWith({ model: alpha }));
  assert.deepEqual([again.status, again.body], [200, { ok: true, model: alpha }]);
  await gateway.ask(alpha);
  const unknown = await gateway.json("/api/eject-model", postWith({ model: "acme/none" }));
  assert.deepEqual([unknown.status, codeOf(unknown)], [404, "model_not_found"]);
});
