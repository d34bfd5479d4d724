// Streams that break off and clients that leave, on every generating route of the compatible family, as its clients see it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { cacheModel, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { childrenOf } from "../support/processes.ts";

const model = "acme/talker:Q8_0";
const messages = [{ role: "user" as const, content: "forever" }];

/** Asked "forever", its one slot talks for ten seconds and more. */
async function start(t: TestContext): Promise<TestGateway> {
  const folders = await makeFolders(t);
  const bytes = modelBytes(talkingModel("talker", { contextLength: 131_072 }));
  await cacheModel(folders, "acme/talker", "talker-Q8_0.gguf", bytes);
  const preset = "{ threads: 1, threads-batch: 1, parallel: 1 }";
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${model}", preset: ${preset} }]\n`,
  });
  await gateway.converged();
  return gateway;
}

interface Route {
  readonly path: string;
  readonly body: object;
  /** The stream as the family's own client gives it. */
  stream(gateway: TestGateway): Promise<AsyncIterable<unknown>>;
}

const openai = ({ url }: TestGateway): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const anthropic = ({ url }: TestGateway): Anthropic => new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });

const routes: readonly Route[] = [
  {
    path: "/v1/chat/completions",
    body: { messages },
    stream: (gateway) => openai(gateway).chat.completions.create({ model, messages, stream: true }),
  },
  {
    path: "/v1/completions",
    body: { prompt: "hi", ignore_eos: true },
    stream: (gateway) =>
      openai(gateway).completions.create({ model, prompt: "hi", stream: true, ignore_eos: true } as never) as never,
  },
  {
    path: "/v1/responses",
    body: { input: "forever" },
    stream: (gateway) => openai(gateway).responses.create({ model, input: "forever", stream: true }),
  },
  {
    path: "/v1/messages",
    body: { messages, max_tokens: 100_000 },
    stream: (gateway) => anthropic(gateway).messages.create({ model, messages, max_tokens: 100_000, stream: true }),
  },
];

test("a stream whose engine dies ends in an error that the family's own client throws", async (t) => {
  const gateway = await start(t);
  const { router } = gateway.gateway.status();
  for (const route of routes) {
    await t.test(route.path, async () => {
      let pieces = 0;
      const reading = async (): Promise<void> => {
        for await (const _ of await route.stream(gateway)) {
          if (++pieces !== 5) continue;
          for (const pid of await childrenOf(router.pid ?? 0)) process.kill(pid, "SIGKILL");
        }
      };
      await assert.rejects(reading(), (error: unknown) => {
        assert.ok(error instanceof OpenAI.APIError || error instanceof Anthropic.APIError, String(error));
        assert.match(error.message, /engine broke off/);
        return true;
      });
      assert.ok(pieces >= 5);
    });
  }
  await t.test("the next request is served", async () => {
    assert.equal(await gateway.ask(model), answersOf("talker").hello);
  });
});

test("a client that leaves ends the generation, streamed or not", async (t) => {
  const gateway = await start(t);
  for (const { path, body } of routes) {
    for (const stream of [true, false]) {
      await t.test(`${path} (${stream ? "stream" : "no stream"})`, async () => {
        const leaving = new AbortController();
        const request = fetch(gateway.url + path, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ ...body, model, stream }),
          signal: leaving.signal,
        });
        await gateway.until("in flight", ({ inFlight }) => inFlight[model] === 1);
        leaving.abort();
        await assert.rejects(
          request.then((response) => response.text()),
          { name: "AbortError" },
        );
        await gateway.until("released", ({ inFlight }) => Object.keys(inFlight).length === 0);
        // It has one slot: were it busy still, this would wait for the end of an answer of many seconds.
        const asked = Date.now();
        assert.equal(await gateway.ask(model), answersOf("talker").hello);
        assert.ok(Date.now() - asked < 15_000);
      });
    }
  }
});
