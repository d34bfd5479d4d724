// How long a model stays loaded that nobody uses: as its last request said, whichever family it came by.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { eventsOf, loadedIds, startTestGateway, type TestGateway, untilLoaded } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { chatWith } from "../support/requests.ts";

/** How often the router has said that a model is unloaded. */
function unloads({ gateway }: TestGateway, model: string): number {
  return eventsOf(gateway, "model").filter(({ data }) => {
    const { model: id, data: state } = data as { model: string; data?: { status?: string } };
    return id === model && state?.status === "unloaded";
  }).length;
}

async function unloaded(gateway: TestGateway, model: string, times: number): Promise<void> {
  await gateway.until(`${model} unloaded ${times} times`, () => unloads(gateway, model) >= times);
  assert.ok(!(await loadedIds(gateway)).includes(model));
}

async function expiry(gateway: TestGateway, model: string): Promise<number | undefined> {
  const { body } = await gateway.json("/api/ps");
  const entry = (body["models"] as { name: string; expires_at: string }[]).find(({ name }) => name === model);
  return entry && Date.parse(entry.expires_at);
}

test("interface 3, keep_alive 0: loaded → not loaded", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  let times = 0;

  // The spellings of zero are read by one function, see unit/core/keep-alive.test.ts.
  for (const [path, empty, keep_alive] of [
    ["/alpha/api/chat", { messages: [] }, 0],
    ["/alpha/api/generate", { prompt: "" }, "0"],
    ["/api/chat", {}, "0s"],
    ["/api/generate", {}, 0],
  ] as const) {
    await t.test(`${path} with nothing to answer and ${JSON.stringify(keep_alive)}`, async () => {
      const load = await gateway.json(path, chatWith(model, "", { messages: undefined, ...empty }));
      assert.deepEqual([load.status, load.body["done_reason"]], [200, "load"]);
      await untilLoaded(gateway, model);
      const eject = await gateway.json(path, chatWith(model, "", { messages: undefined, ...empty, keep_alive }));
      assert.deepEqual([eject.status, eject.body["done_reason"]], [200, "unload"]);
      assert.deepEqual(await loadedIds(gateway), []);
      times++;
    });
  }
  await t.test("of a model that is not loaded", async () => {
    const { status, body } = await gateway.json("/api/chat", chatWith(model, "", { messages: [], keep_alive: 0 }));
    assert.deepEqual([status, body["done"], body["done_reason"]], [200, true, "unload"]);
  });
  const answerOf = (body: Record<string, unknown>): unknown =>
    (body["message"] as { content: string } | undefined)?.content ?? body["response"];
  for (const [path, asked] of [
    ["/alpha/api/chat", { messages: [{ role: "user", content: "hi" }], tools: "nonsense" }],
    ["/alpha/api/generate", { prompt: "hi", options: { num_ctx: -1 } }],
  ] as const) {
    for (const stream of [true, false]) {
      await t.test(`${path} ${stream ? "streamed" : "whole"}: an eject whatever else the body has`, async () => {
        await gateway.ask(model);
        await untilLoaded(gateway, model);
        const { body } = await gateway.json(path, chatWith(`${model}.gguf`, "hi", { ...asked, keep_alive: 0, stream }));
        assert.deepEqual(
          [body["model"], answerOf(body), body["done"], body["done_reason"]],
          [`${model}.gguf`, "", true, "unload"],
        );
        assert.deepEqual(await loadedIds(gateway), []);
        times++;
      });
    }
    await t.test(`${path} at /api: Ollama's rule, the answer first`, async () => {
      const request = chatWith(model, "hi", { prompt: "hi", keep_alive: 0, stream: false });
      const { status, body } = await gateway.json(path.replace("/alpha", ""), request);
      assert.deepEqual([status, answerOf(body), body["done_reason"]], [200, answersOf("acme/alpha").hello, "stop"]);
      await unloaded(gateway, model, ++times);
    });
    await t.test(`${path}: an eject of a model that nobody knows`, async () => {
      assert.equal((await gateway.json(path, chatWith("nothing", "hi", { keep_alive: 0 }))).status, 404);
      assert.equal((await gateway.json(path, { ...chatWith("", ""), body: '{"keep_alive":0}' })).status, 400);
    });
  }
  await t.test("a keep_alive that is none", async () => {
    const { status, body } = await gateway.json("/api/generate", chatWith(model, "", { keep_alive: "soon" }));
    assert.deepEqual([status, body], [400, { error: 'keep_alive must be seconds, or a duration such as "5m"' }]);
  });
});

test("a model goes once its time is over, and not while it answers", async (t) => {
  const folders = await makeFolders(t);
  const model = "acme/endless:Q8_0";
  const endless = modelBytes(talkingModel("endless", { contextLength: 131_072 }));
  await cacheModel(folders, "acme/endless", "endless-Q8_0.gguf", endless);
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const leaving = new AbortController();
  const request = chatWith(model, "forever", { keep_alive: "100ms" });
  const answer = await fetch(`${gateway.url}/api/chat`, { ...request, signal: leaving.signal });
  const reader = answer.body?.getReader();
  await reader?.read();
  // Nobody else's is answered sooner than its own time is over.
  const startedAt = Date.now();
  while (Date.now() - startedAt < 400) await reader?.read();
  assert.equal(unloads(gateway, model), 0);
  leaving.abort();
  await unloaded(gateway, model, 1);
});

test("without a word the gateway's own time holds, for both families; what was said goes with the model", async (t) => {
  const folders = await makeFolders(t);
  const [kept, brief] = [await cacheTalker(folders, "acme/kept"), await cacheTalker(folders, "acme/brief")];
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n", flags: ["--keep-alive", "300ms"] });
  await gateway.converged();
  await gateway.json("/api/chat", chatWith(kept, "hi", { keep_alive: -1, stream: false }));
  // It says nothing of the kind, so what was said holds.
  await gateway.ask(kept);
  await gateway.ask(brief);
  const expires = await expiry(gateway, brief);
  assert.ok(expires === undefined || expires - Date.now() <= 300, String(expires));
  await unloaded(gateway, brief, 1);
  assert.ok(((await expiry(gateway, kept)) ?? 0) > Date.now() + 86_400_000);
  await untilLoaded(gateway, kept);
  await gateway.json("/api/generate", chatWith(kept, "", { keep_alive: 0 }));
  await gateway.json("/api/generate", chatWith(kept, ""));
  await unloaded(gateway, kept, 2);
});
