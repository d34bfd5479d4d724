// A context size that the engine cannot run is raised to the least that it can, whoever asks for it: no model is lost by it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { smallestContext } from "../../src/core/context-size.ts";
import { startLlamaServer } from "../support/engine.ts";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel, writeModelFile } from "../support/models.ts";
import { contextLengths } from "../support/own-calls.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";
import { scratchFolder } from "../support/scratch.ts";

const alpha = "acme/alpha:Q8_0";
const hello = answersOf("acme/alpha").hello;

async function applied(gateway: TestGateway): Promise<readonly unknown[]> {
  const { models } = await gateway.converged();
  const condition = models[0]?.conditions.find(({ type }) => type === "Applied");
  return [condition?.status, condition?.message];
}

async function start(t: TestContext, yaml: string): Promise<TestGateway> {
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml });
  await gateway.converged();
  return gateway;
}

/** The model answers, and everybody names the size that it has. */
async function isInForce(gateway: TestGateway, size: number): Promise<void> {
  const { status, headers, body } = await gateway.json("/v1/chat/completions", chatWith(alpha));
  assert.equal(status, 200, JSON.stringify(body));
  const [choice] = body["choices"] as { message: { content: string } }[];
  assert.deepEqual([headers.get("x-context-size"), choice?.message.content], [String(size), hello]);
  assert.deepEqual(await contextLengths(gateway), { [alpha]: size });
  const preset = await readFile(join(gateway.stateDir, "router.preset.ini"), "utf8");
  assert.deepEqual(preset.match(/^ctx-size = .*$/gm), [`ctx-size = ${size}`]);
  const { body: props } = await gateway.json(`/props?model=${alpha}`);
  assert.equal((props["default_generation_settings"] as { n_ctx: number }).n_ctx, size);
}

test("in the file: of a model, and of all", async (t) => {
  const gateway = await start(t, `version: 1\nmodels: [{ id: "${alpha}", ctxSize: 1 }]\n`);
  await isInForce(gateway, smallestContext);
  assert.deepEqual(await applied(gateway), [
    "True",
    "It runs with a context of 256 tokens; 1 is less than the engine can run.",
  ]);
  await gateway.json("/api/desired?wait=true", patchWith({ context: { default: 1 }, models: { [alpha]: null } }));
  await isInForce(gateway, smallestContext);
});

test("by every call: a change of the document, set-ctx-size, a chat of either family", async (t) => {
  const gateway = await start(t, "version: 1\n");
  const calls: readonly (readonly [path: string, init: RequestInit])[] = [
    ["/api/desired?wait=true", patchWith({ models: { [alpha]: { ctxSize: 1 } } })],
    ["/api/set-ctx-size", postWith({ model: alpha, ctx_size: 1 })],
    ["/v1/chat/completions", chatWith(alpha, "hi", { num_ctx: 1 })],
    ["/api/chat", chatWith(alpha, "hi", { stream: false, options: { num_ctx: 2 } })],
  ];
  for (const [path, init] of calls) {
    await gateway.json("/api/set-ctx-size", postWith({ model: alpha, ctx_size: 1024 }));
    const { status, body } = await gateway.json(path, init);
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
    if (path === "/api/set-ctx-size") assert.deepEqual(body, { ok: true, model: alpha, ctx_size: smallestContext });
    await isInForce(gateway, smallestContext);
  }
});

test("a model that was trained for less gets what it was trained for", async (t) => {
  const folders = await makeFolders(t);
  await cacheModel(
    folders,
    "acme/alpha",
    "a-Q8_0.gguf",
    modelBytes(talkingModel("acme/alpha", { contextLength: 128 })),
  );
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const { body } = await gateway.json("/api/set-ctx-size", postWith({ model: alpha, ctx_size: 1 }));
  assert.deepEqual(body, { ok: true, model: alpha, ctx_size: 128 });
  await isInForce(gateway, 128);
});

test("a document may set more than a model was trained for, and the status tells what a request gets", async (t) => {
  const gateway = await start(t, `version: 1\nmodels: [{ id: "${alpha}", ctxSize: 16384 }]\n`);
  const { headers } = await gateway.json("/v1/chat/completions", chatWith(alpha));
  assert.equal(headers.get("x-context-size"), "8192");
  assert.deepEqual(await applied(gateway), [
    "True",
    "It runs with a context of 16384 tokens, of which a request gets no more than the 8192 that the model was trained for.",
  ]);
});

test("the engine ends while loading with a context of 1, and gives a smaller one than the least in no case", async (t) => {
  const path = join(await scratchFolder(t), "alpha.gguf");
  await writeModelFile(path, talkingModel("alpha"));
  const args = (size: number): string[] => ["-m", path, "-t", "1", "-c", String(size)];
  await assert.rejects(startLlamaServer(t, args(1)), /llama-server ended/);
  const { url } = await startLlamaServer(t, args(2));
  const props = (await (await fetch(`${url}/props`)).json()) as { default_generation_settings: { n_ctx: number } };
  assert.equal(props.default_generation_settings.n_ctx, smallestContext);
});
