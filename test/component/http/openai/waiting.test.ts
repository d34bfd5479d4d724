// A stream whose model is long in loading: its client hears of it before it gives up, and an error still reaches it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import Fastify from "fastify";
import { GatewayError } from "../../../../src/core/errors.ts";
import { answerTranslator } from "../../../../src/http/ollama/answers.ts";
import { installCompat } from "../../../../src/http/openai/routes.ts";
import { runGeneration } from "../../../../src/http/proxy/exchange.ts";
import type { CachedModel } from "../../../../src/plan/observed.ts";
import { cleanUp } from "../../../support/clean-up.ts";
import { type LoadingModel, loadingModel } from "../../../support/loading-model.ts";

const chunk = 'data: {"choices":[]}\n\ndata: [DONE]\n\n';

interface Setting extends LoadingModel {
  readonly url: string;
}

async function start(t: TestContext, tickMs?: number | null): Promise<Setting> {
  const model = loadingModel((stream) => (stream ? chunk : '{"choices":[]}'), tickMs);
  const { deps } = model;
  const app = Fastify();
  installCompat(app, "compat", deps);
  app.post("/native", (_request, reply) => {
    const asIs = { read: (chunk: unknown) => chunk, write: (record: object) => record };
    reply.hijack();
    runGeneration(deps, reply.raw, {
      model: { id: "acme/a:Q8_0", upstreamId: "acme/a:Q8_0" } as CachedModel,
      path: "/v1/chat/completions",
      route: "/chat",
      body: [Buffer.from("{}")],
      stream: true,
      translator: answerTranslator({ model: "a", topLogprobs: 0, stream: true, ...asIs }),
    });
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  cleanUp(t, () => app.close());
  return { url, ...model };
}

function ask({ url }: Setting, stream: boolean, path = "/chat/completions"): Promise<Response> {
  return fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "a", messages: [], stream }),
  });
}

test("headers and comments come while the model loads, then the stream as it is", async (t) => {
  const setting = await start(t);
  // Resolves with the headers, though nothing is loaded.
  const response = await ask(setting, true);
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  setting.loaded("loaded");
  assert.match(await response.text(), /^(: waiting\n\n)+data: \{"choices":\[\]\}\n\ndata: \[DONE\]\n\n$/);
});

test("a load that fails after that ends the stream in an error frame", async (t) => {
  const setting = await start(t);
  const response = await ask(setting, true);
  setting.loaded(new GatewayError("model_load_failed", "no memory"));
  const text = await response.text();
  assert.match(text, /^(: waiting\n\n)+data: \{"error":\{"message":"no memory".*"code":"model_load_failed"\}\}\n\n$/);
});

test("a native stream's headers come too, white space until its first record, and an error as its last line", async (t) => {
  const setting = await start(t);
  const response = await ask(setting, true, "/native");
  assert.deepEqual([response.status, response.headers.get("content-type")], [200, "application/x-ndjson"]);
  setting.loaded(new GatewayError("model_load_failed", "no memory"));
  const text = await response.text();
  assert.match(text, /^ +\{"error":"no memory"\}\n$/);
  assert.deepEqual(JSON.parse(text), { error: "no memory" });
});

test("the first sign of life comes after 5 s, and until then an error has a status of its own", async (t) => {
  const setting = await start(t, null);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let isAnswered = false;
  const late = ask(setting, true).then((response) => {
    isAnswered = true;
    return response;
  });
  await setting.waiting;
  t.mock.timers.tick(4_999);
  // Time enough for what would have been sent to arrive.
  for (let count = 0; count < 50; count++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isAnswered, false);
  t.mock.timers.tick(1);
  const response = await late;
  assert.equal(response.status, 200);
  t.mock.timers.tick(12_000);
  setting.loaded("loaded");
  assert.match(await response.text(), /^(: waiting\n\n){2}data: /);
});

test("an answer that is no stream keeps its status for the end", async (t) => {
  const setting = await start(t);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = ask(setting, false);
  await setting.waiting;
  t.mock.timers.tick(60_000);
  setting.loaded(new GatewayError("model_load_failed", "no memory"));
  assert.equal((await asked).status, 500);
});

test("a request that waits is listed; once cancelled its client gets the error, and it is listed no more", async (t) => {
  for (const stream of [true, false]) {
    const setting = await start(t);
    const { inFlight } = setting.deps;
    const asked = ask(setting, stream);
    await setting.waiting;
    const [listed, ...others] = inFlight.list();
    assert.deepEqual(
      [listed?.model, listed?.route, listed?.state, others],
      ["acme/a:Q8_0", "/chat/completions", "waiting", []],
    );
    assert.equal(inFlight.cancel((listed?.id ?? 0) + 1), false);
    // The headers of a stream may have been sent.
    if (stream) await asked;
    assert.equal(inFlight.cancel(listed?.id ?? 0), true);
    const response = await asked;
    assert.equal(response.status, stream ? 200 : 499);
    assert.match(await response.text(), /"code":"cancelled"/);
    assert.deepEqual(inFlight.list(), []);
    assert.equal(inFlight.cancel(listed?.id ?? 0), false);
  }
});
