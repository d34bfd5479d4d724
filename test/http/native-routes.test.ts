// The native family on the wire, as its clients write to it: methods, content types, names of fields, and plain refusals.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";

test("interface 4, Native routes: on the wire", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();

  function send(method: string, path: string, body?: object, type?: string): Promise<Response> {
    return fetch(gateway.url + path, {
      method,
      // Bytes have no type of their own: then none is sent.
      ...(body && { body: Buffer.from(JSON.stringify(body)) }),
      ...(type && { headers: { "content-type": type } }),
    });
  }

  for (const prefix of ["/alpha/api", "/api"]) {
    await t.test(`HEAD where Ollama has it, ${prefix}`, async () => {
      for (const path of ["/tags", "/version", "/ps"]) {
        const response = await send("HEAD", prefix + path);
        assert.deepEqual([response.status, await response.text()], [200, ""], path);
      }
    });
    await t.test(`bodies under any type or none, ${prefix}`, async () => {
      for (const type of [undefined, "application/json", "application/x-www-form-urlencoded", "text/plain"]) {
        const body = { model, messages: [{ role: "user", content: "hi" }], stream: false };
        const response = await send("POST", `${prefix}/chat`, body, type);
        const answer = (await response.json()) as { message?: { content: string } };
        assert.equal(answer.message?.content, answersOf("acme/alpha").hello, type);
        const gone = await send("DELETE", `${prefix}/delete`, { name: "acme/nothing:Q8_0" }, type);
        assert.equal(gone.status, 404, type);
        assert.match(((await gone.json()) as { error: string }).error, /acme\/nothing:Q8_0/);
      }
    });
    await t.test(`a name as model or as name, with and without its ending, ${prefix}`, async () => {
      for (const body of [
        { model },
        { name: model },
        { model, name: model },
        { model: "", name: "alpha:latest" },
        { model: "acme/alpha:model-Q8_0.gguf" },
      ]) {
        const response = await send("POST", `${prefix}/show`, body);
        const shown = (await response.json()) as { details?: { quantization_level: string } };
        assert.deepEqual([response.status, shown.details?.quantization_level], [200, "Q8_0"], JSON.stringify(body));
      }
    });
    await t.test(`streams are lines of JSON, ${prefix}`, async () => {
      for (const [path, body] of [
        ["/chat", { model, messages: [{ role: "user", content: "hi" }] }],
        ["/generate", { model, prompt: "hi" }],
        ["/generate", { model, prompt: "hi", raw: true }],
      ] as const) {
        const response = await send("POST", prefix + path, body);
        assert.equal(response.headers.get("content-type"), "application/x-ndjson");
        const lines = (await response.text()).split("\n");
        assert.equal(lines.pop(), "");
        const records = lines.map((line) => JSON.parse(line) as { model: string; done: boolean; created_at: string });
        assert.ok(records.every((record) => record.model === model && Number.isFinite(Date.parse(record.created_at))));
        assert.deepEqual(
          records.map((record) => record.done),
          records.map((_, at) => at === records.length - 1),
        );
      }
    });
    await t.test(`what is refused, ${prefix}`, async () => {
      for (const [method, path, body, status, error] of [
        ["POST", "/chat", {}, 400, /^model is missing$/],
        ["POST", "/generate", { model, prompt: 1 }, 400, /^prompt must be a string$/],
        ["POST", "/embed", { model, input: [1] }, 400, /^input\[0\] must be a string$/],
        ["POST", "/show", {}, 400, /^model is required$/],
        ["POST", "/show", { model: "nothing" }, 404, /^model 'nothing' not found/],
        ["POST", "/copy", { source: model }, 400, /^destination is missing$/],
        ["POST", "/pull", { model: "", stream: true }, 400, /^model is required$/],
        ["POST", "/pull", { model, stream: "yes" }, 400, /^stream must be a boolean$/],
        ["POST", "/create", { model: "x" }, 501, /./],
        ["POST", "/push", { model }, 501, /./],
        ["POST", "/blobs/sha256:00", {}, 501, /./],
        ["GET", "/status", undefined, 501, /./],
        ["POST", "/me", undefined, 501, /./],
        ["POST", "/signout", undefined, 501, /./],
        ["POST", "/experimental/web_search", {}, 501, /./],
        ["GET", "/chat", undefined, 405, /./],
        ["GET", "/nothing", undefined, 404, /./],
      ] as const) {
        const response = await send(method, prefix + path, body);
        const answer = (await response.json()) as { error: string };
        assert.deepEqual([response.status, Object.keys(answer)], [status, ["error"]], `${method} ${path}`);
        assert.match(answer.error, error);
      }
      assert.equal((await send("HEAD", `${prefix}/blobs/sha256:00`)).status, 501);
    });
  }
});

test("a context size that a load carries is in force when it is done", async (t) => {
  const folders = await makeFolders(t);
  const model = "acme/sized:Q8_0";
  await cacheModel(folders, "acme/sized", "sized-Q8_0.gguf", modelBytes(talkingModel("sized")));
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const body = JSON.stringify({ model, options: { num_ctx: 1024 }, keep_alive: "1h" });
  const load = await gateway.json("/api/generate", { method: "POST", body });
  assert.deepEqual([load.status, load.body["done_reason"]], [200, "load"]);
  const { models } = (await gateway.json("/api/ps")).body as { models: { name: string; context_length: number }[] };
  assert.deepEqual(
    models.map(({ name, context_length }) => [name, context_length]),
    [[model, 1024]],
  );
});
