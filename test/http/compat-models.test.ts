// The model list of the compatible family and llama.cpp's own model routes, at each of their places.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { loadedIds, startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answersOf, gapFiller, insertModel, modelBytes } from "../support/models.ts";
import { postWith } from "../support/requests.ts";

const alpha = "acme/alpha:Q8_0";

async function start(t: TestContext): Promise<TestGateway> {
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/alpha");
  await cacheModel(folders, "acme/filler", "filler-Q8_0.gguf", modelBytes(insertModel("filler")));
  await cacheModel(folders, "acme/broken", "broken-Q8_0.gguf", Buffer.from("this is no GGUF file at all"));
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${alpha}", ctxSize: 2048, preset: { threads: 1 } }]\n`,
  });
  await gateway.converged();
  return gateway;
}

/** What it takes of memory is known some time after the start; engine/memory-facts.test.ts has it. */
function timeless(entry: { readonly meta?: unknown } | undefined): object {
  const { memory: _, ...meta } = { ...(entry?.meta as object) } as { memory?: object };
  return { ...entry, created: 0, meta };
}

test("interface 2, Model entry: the list and its entries", async (t) => {
  const gateway = await start(t);
  const entry = (loaded: boolean): object => ({
    id: alpha,
    object: "model",
    created: 0,
    owned_by: "acme",
    context_length: 2048,
    n_ctx_train: 8192,
    loaded,
    aliases: ["acme/alpha:model-Q8_0"],
    status: { value: loaded ? "loaded" : "unloaded" },
    meta: { n_ctx_train: 8192, n_ctx: 2048 },
  });
  const paths = ["/beta/v1/models", "/v1/models", "/alpha/v1/models", "/models", "/beta/models", "/models/"];

  await t.test("the same list at each of its places", async () => {
    for (const path of paths) {
      const { status, body } = await gateway.json(path);
      const { object, data } = body as { object: string; data: { id: string; created: number; meta: object }[] };
      assert.deepEqual([status, object], [200, "list"], path);
      assert.deepEqual(
        data.map(({ id }) => id),
        [alpha, "acme/broken:Q8_0", "acme/filler:Q8_0"],
      );
      assert.deepEqual(timeless(data[0]), entry(false));
      assert.ok(Math.abs((data[0]?.created ?? 0) - Date.now() / 1000) < 600);
      // The file says nothing of its trained context: the field is left out.
      assert.equal(Object.hasOwn(data[1] ?? {}, "n_ctx_train"), false);
    }
  });
  await t.test("one entry by its id, whole or with its slash escaped, and by another name", async () => {
    for (const name of [
      alpha,
      "acme%2Falpha%3AQ8_0",
      "acme/alpha:model-Q8_0",
      "ACME/ALPHA:q8_0",
      "alpha",
      `${alpha}.gguf`,
    ]) {
      const { status, body } = await gateway.json(`/beta/v1/models/${name}`);
      assert.deepEqual([status, timeless(body)], [200, entry(false)], name);
    }
  });
  await t.test("an unknown one", async () => {
    const { status, body } = await gateway.json("/v1/models/acme/alpa");
    const { error } = body as { error: { message: string } };
    assert.equal(status, 404);
    assert.deepEqual(
      { ...error, message: "" },
      { message: "", type: "invalid_request_error", param: "model", code: "model_not_found" },
    );
    assert.match(error.message, /did you mean acme\/alpha:Q8_0/);
  });
  await t.test("HEAD", async () => {
    for (const path of ["/beta/v1/models", `/beta/v1/models/${alpha}`, "/models"]) {
      const response = await fetch(gateway.url + path, { method: "HEAD" });
      assert.deepEqual([response.status, await response.text()], [200, ""], path);
    }
    assert.equal((await fetch(`${gateway.url}/v1/models/none`, { method: "HEAD" })).status, 404);
  });
  await t.test("interface 3, loaded: it says so", async () => {
    await gateway.ask(alpha);
    assert.deepEqual(timeless((await gateway.json(`/v1/models/${alpha}`)).body), entry(true));
  });
});

test("llama.cpp's own routes", async (t) => {
  const gateway = await start(t);

  for (const prefix of ["/beta/v1", "/beta", ""]) {
    await t.test(`${prefix}/models/load and /models/unload`, async () => {
      for (const _ of ["not loaded", "loaded"]) {
        const { status, body } = await gateway.json(`${prefix}/models/load`, postWith({ model: "alpha" }));
        assert.deepEqual([status, body], [200, { success: true }]);
        await gateway.until("loaded", ({ models }) =>
          (models.find(({ id }) => id === alpha)?.conditions ?? []).some(
            ({ type, status }) => type === "Loaded" && status === "True",
          ),
        );
      }
      for (const _ of ["loaded", "not loaded"]) {
        const { status, body } = await gateway.json(`${prefix}/models/unload`, postWith({ model: `${alpha}.gguf` }));
        assert.deepEqual([status, body], [200, { success: true }]);
        assert.deepEqual(await loadedIds(gateway), []);
      }
      for (const path of ["load", "unload"]) {
        const { status, body } = await gateway.json(`${prefix}/models/${path}`, postWith({ model: "nothing" }));
        assert.deepEqual([status, (body["error"] as { code: string }).code], [404, "model_not_found"]);
        assert.equal((await gateway.json(`${prefix}/models/${path}`, postWith({}))).status, 400);
      }
    });
  }
  await t.test("a load that fails is taken all the same, and the gateway goes on", async () => {
    const { body } = await gateway.json("/models/load", postWith({ model: "acme/broken:Q8_0" }));
    assert.deepEqual(body, { success: true });
    assert.equal(await gateway.ask(alpha), answersOf("acme/alpha").hello);
  });
  await t.test("health and the router's properties", async () => {
    for (const prefix of ["/beta/v1", "/v1", "/beta", ""])
      assert.deepEqual((await gateway.json(`${prefix}/health`)).body, { status: "ok" });
    for (const prefix of ["/beta", ""]) {
      assert.equal((await gateway.json(`${prefix}/props`)).body["role"], "router");
    }
  });
  await t.test("a model's properties, which are no occasion to load it", async () => {
    await gateway.json("/models/unload", postWith({ model: alpha }));
    const unloaded = await gateway.json(`/props?model=${alpha}&autoload=true`);
    assert.deepEqual([unloaded.status, await loadedIds(gateway)], [400, []]);
    assert.equal((await gateway.json("/props?model=nothing")).status, 404);
    await gateway.ask(alpha);
    const { status, body } = await gateway.json(`/props?model=${encodeURIComponent(alpha)}`);
    const { n_ctx } = body["default_generation_settings"] as { n_ctx: number };
    assert.deepEqual([status, n_ctx], [200, 2048]);
  });
  await t.test("completions: llama.cpp's shape without a version, OpenAI's with one", async () => {
    const request = postWith({ model: alpha, prompt: "hi", n_predict: 3, max_tokens: 3 });
    for (const prefix of ["", "/beta"]) {
      const { body } = await gateway.json(`${prefix}/completions`, request);
      assert.deepEqual([typeof body["content"], body["stop"], body["choices"]], ["string", true, undefined], prefix);
      const stream = postWith({ model: alpha, prompt: "hi", n_predict: 3, stream: true });
      const text = await (await fetch(`${gateway.url}${prefix}/completions`, stream)).text();
      assert.match(text, /"stop":true/);
      assert.doesNotMatch(text, /"error"|\[DONE\]/);
    }
    for (const prefix of ["/v1", "/beta/v1"]) {
      const { body } = await gateway.json(`${prefix}/completions`, request);
      assert.equal(typeof (body["choices"] as { text: string }[])[0]?.text, "string", prefix);
    }
  });
  await t.test("tokens, templates and gaps", async () => {
    const { body: tokenized } = await gateway.json("/tokenize", postWith({ model: "alpha", content: "hi" }));
    const { tokens } = tokenized as { tokens: number[] };
    assert.ok(tokens.length > 0);
    const { body: text } = await gateway.json("/detokenize", postWith({ model: alpha, tokens }));
    assert.match(String(text["content"]), /hi$/);
    const { body: prompt } = await gateway.json(
      "/beta/apply-template",
      postWith({ model: alpha, messages: [{ role: "user", content: "hi there" }] }),
    );
    assert.match(String(prompt["prompt"]), /hi there/);
    const gap = { model: "acme/filler:Q8_0", input_prefix: "function add(a, b) { ", input_suffix: " }" };
    assert.equal((await gateway.json("/infill", postWith(gap))).body["content"], gapFiller);
    const { status, body } = await gateway.json("/infill", postWith({ ...gap, model: alpha }));
    assert.deepEqual([status, (body["error"] as { code: string }).code], [400, "not_capable"]);
  });
  await t.test("its own completions as a stream, whole without any end mark but their own", async () => {
    const response = await fetch(
      `${gateway.url}/completion`,
      postWith({ model: alpha, prompt: "hi", stream: true, n_predict: 3 }),
    );
    const text = await response.text();
    assert.match(text, /"stop":true/);
    assert.doesNotMatch(text, /"error"/);
  });
  await t.test("chats without a version in the path", async () => {
    for (const prefix of ["/beta", ""]) {
      const { body } = await gateway.json(
        `${prefix}/chat/completions`,
        postWith({ model: alpha, messages: [{ role: "user", content: "hi" }] }),
      );
      const [choice] = body["choices"] as { message: { content: string } }[];
      assert.equal(choice?.message.content, answersOf("acme/alpha").hello);
    }
  });
});
