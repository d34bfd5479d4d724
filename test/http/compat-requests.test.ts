// What the compatible family refuses, and how; and what becomes of the members of a body that are the gateway's own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { loadedIds, startTestGateway } from "../support/gateway.ts";
import { answersOf, embeddingModel, modelBytes } from "../support/models.ts";
import { chatWith } from "../support/requests.ts";

const json = { "content-type": "application/json" };
const messages = [{ role: "user", content: "hi" }];

test("requests of the compatible family", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const embedder = "acme/embedder:Q8_0";
  await cacheModel(folders, "acme/embedder", "embedder-Q8_0.gguf", modelBytes(embeddingModel("embedder")));
  await cacheModel(folders, "acme/broken", "broken-Q8_0.gguf", Buffer.from("this is no GGUF file at all"));
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${alpha}", preset: { threads: 1 } }]\n`,
    flags: ["--body-limit", "10000"],
  });
  await gateway.converged();
  const paths = ["/beta/v1/chat/completions", "/v1/embeddings", "/v1/responses", "/beta/v1/messages", "/completions"];

  const refused: readonly (readonly [
    what: string,
    init: RequestInit,
    status: number,
    code: string,
    message: RegExp,
  ])[] = [
    ["no body", { headers: json }, 400, "invalid_request", /empty/],
    ["broken JSON", { headers: json, body: '{"model":"a",\n"n":}' }, 400, "invalid_request", /line 2, column 5/],
    ["no object", { headers: json, body: "[]" }, 400, "invalid_request", /no JSON object/],
    ["no model", { headers: json, body: "{}" }, 400, "invalid_request", /model is missing/],
    ["an unknown model", { headers: json, body: '{"model":"none"}' }, 404, "model_not_found", /'none' not found/],
    [
      "another type",
      { headers: { "content-type": "text/plain" }, body: "{}" },
      400,
      "invalid_request",
      /model is missing/,
    ],
    [
      "another type from a page",
      { headers: { "content-type": "text/plain", origin: "http://localhost" }, body: "{}" },
      415,
      "unsupported_media_type",
      /json/,
    ],
    [
      "too much",
      { headers: json, body: JSON.stringify({ x: "y".repeat(20_000) }) },
      413,
      "body_too_large",
      /body-limit/,
    ],
    ["a wrong size", { headers: json, body: '{"model":"alpha","num_ctx":-1}' }, 400, "invalid_request", /num_ctx/],
    [
      "a wrong time",
      { headers: json, body: '{"model":"alpha","keep_alive":"x"}' },
      400,
      "invalid_request",
      /keep_alive/,
    ],
  ];
  for (const [what, init, status, code, message] of refused) {
    await t.test(`interface 7, Errors: ${what}`, async () => {
      for (const path of paths) {
        const { body, ...answer } = await gateway.json(path, { method: "POST", ...init });
        const error = body["error"] as { message: string; type: string; code: string };
        assert.deepEqual([answer.status, error.code], [status, code], path);
        assert.match(error.message, message);
        assert.equal(body["type"], path.endsWith("/messages") ? "error" : undefined);
      }
    });
  }
  await t.test("a model that cannot be loaded: repeating is of no use, and clients are told", async () => {
    const { status, headers, body } = await gateway.json("/v1/chat/completions", chatWith("acme/broken:Q8_0"));
    assert.deepEqual([status, (body["error"] as { code: string }).code], [500, "model_load_failed"]);
    assert.equal(headers.get("x-should-retry"), "false");
  });
  await t.test("what a model cannot do is refused as the request's matter", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const cases: readonly (readonly [path: string, body: object])[] = [
      ["embeddings", { model: alpha, input: "hi" }],
      ["rerank", { model: alpha, query: "hi", documents: ["a"] }],
      ["chat/completions", { model: alpha, messages: [{ role: "user", content: [image] }] }],
    ];
    for (const [path, request] of cases) {
      const { status, body } = await gateway.json(`/v1/${path}`, {
        method: "POST",
        headers: json,
        body: JSON.stringify(request),
      });
      const { code, type } = body["error"] as { code: string; type: string };
      assert.deepEqual([status, code, type], [400, "not_capable", "invalid_request_error"], path);
    }
  });
  await t.test("an embedding model that is asked to chat leaves the gateway as it was", async () => {
    await gateway.json("/v1/chat/completions", chatWith(embedder));
    const { status } = await gateway.json("/v1/embeddings", {
      method: "POST",
      headers: json,
      body: JSON.stringify({ model: embedder, input: "hi" }),
    });
    assert.equal(status, 200);
  });
  await t.test("the client's key does not go on to the engine, whose own it is not", async () => {
    const { status, body } = await gateway.json("/v1/chat/completions", {
      ...chatWith(alpha),
      headers: { ...json, authorization: "Bearer something-else", "anthropic-version": "2023-06-01" },
    });
    assert.equal(status, 200, JSON.stringify(body));
  });
  await t.test("embeddings: llama.cpp's shape without a version, OpenAI's with one", async () => {
    const init = { method: "POST", body: JSON.stringify({ model: embedder, input: "a text" }) };
    for (const path of ["/embeddings", "/beta/embeddings", "/embedding"]) {
      const [first] = (await gateway.json(path, init)).body as unknown as { index: number; embedding: number[][] }[];
      assert.deepEqual([first?.index, first?.embedding[0]?.length], [0, 64], path);
    }
    for (const path of ["/v1/embeddings", "/beta/v1/embeddings"]) {
      const { data } = (await gateway.json(path, init)).body as { data?: { embedding: number[] }[] };
      assert.equal(data?.[0]?.embedding.length, 64, path);
    }
  });
  await t.test("keep_alive 0: the model is unloaded once it has answered", async () => {
    const { body } = await gateway.json("/v1/chat/completions", chatWith(alpha, "hi", { keep_alive: 0 }));
    const [choice] = body["choices"] as { message: { content: string } }[];
    assert.equal(choice?.message.content, answersOf("acme/alpha").hello);
    const isLoaded = async (): Promise<boolean> => (await loadedIds(gateway)).includes(alpha);
    await gateway.until("unloaded", ({ models }) =>
      (models.find(({ id }) => id === alpha)?.conditions ?? []).some(
        ({ type, status }) => type === "Loaded" && status === "False",
      ),
    );
    assert.equal(await isLoaded(), false);
  });
  await t.test("of two model names in a body the last one answers", async () => {
    const { body } = await gateway.json("/v1/chat/completions", {
      method: "POST",
      headers: json,
      body: `{"model":"none","messages":${JSON.stringify(messages)},"model":"alpha"}`,
    });
    assert.equal(body["model"], alpha);
  });
});
