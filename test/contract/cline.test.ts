// Cline's way with the ollama client: every chat asks for 32,768 tokens of context, whatever the model was trained for, and
// is given up when no headers came within 30 s.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import Fastify from "fastify";
import { type ChatResponse, Ollama } from "ollama";
import { GatewayError } from "../../src/core/errors.ts";
import { installNative } from "../../src/http/ollama/routes.ts";
import { cleanUp } from "../support/clean-up.ts";
import { bearer, call, contractTest, finished, type Json, nativeBases } from "../support/contract.ts";
import { type LoadingModel, loadingModel } from "../support/loading-model.ts";

const trained = 8192;

contractTest(
  "interface 1, Context size in a chat: Cline",
  async (t, contract) => {
    const { says, talker } = contract;
    const contextLength = async (): Promise<unknown> => {
      const { body } = await call(`${contract.url}/beta/v1/models`, null, bearer(contract));
      return (body["data"] as Json[]).find(({ id }) => id === talker)?.["context_length"];
    };
    const reloads = (): number => finished(contract, "router.reload", "router.restart").length;
    assert.equal(await contextLength(), 2048);
    let isFirst = true;

    for (const { label, base, key } of contract.addresses(nativeBases)) {
      await t.test(label, async (t) => {
        const client = new Ollama({ host: base, headers: bearer({ key }) });
        const ask = async (model: string, content: string): Promise<AsyncIterable<ChatResponse>> =>
          client.chat({
            model,
            messages: [
              { role: "system", content: "You are Cline, a skilled software engineer." },
              { role: "user", content },
            ],
            stream: true,
            options: { num_ctx: 32_768 },
          });

        await t.test("the answer comes with what the model was trained for, after one reload for all", async () => {
          const before = reloads();
          for (let round = 0; round < 2; round += 1) {
            let text = "";
            let counts: (number | undefined)[] = [];
            for await (const part of await ask(talker, "long")) {
              text += part.message.content;
              if (part.done) counts = [part.prompt_eval_count, part.eval_count];
            }
            assert.equal(text, says.long);
            assert.ok(counts.length === 2 && counts.every((count) => (count ?? 0) > 0), counts.join());
            assert.equal(await contextLength(), trained);
            assert.equal(reloads() - before, isFirst ? 1 : 0);
          }
          isFirst = false;
        });
        await t.test("the names that it offers", async () => {
          const { body } = await call(`${base.replace(/\/$/, "")}/api/tags`, null, bearer({ key }));
          assert.ok((body["models"] as { name: string }[]).some(({ name }) => name === talker));
        });
        await t.test("a task that is cancelled ends the generation", async () => {
          await assert.rejects(async () => {
            for await (const _ of await ask(contract.endless, "forever")) client.abort();
          });
          await contract.idle();
        });
        await t.test("an unknown model is an error with its status", async () => {
          await assert.rejects(ask("nothing", "hi"), { message: /model 'nothing' not found/, status_code: 404 });
        });
      });
    }
  },
  { ctxSize: 2048 },
);

const answer = [
  '{"choices":[{"index":0,"delta":{"content":"Here."}}]}',
  '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
  "[DONE]",
]
  .map((data) => `data: ${data}\n\n`)
  .join("");

/** The family's routes with a model that is long in loading. */
async function startSlow(t: TestContext): Promise<{ readonly host: string } & Pick<LoadingModel, "loaded">> {
  const { deps, loaded } = loadingModel(() => answer);
  const app = Fastify();
  void app.register(
    (inner, _options, done) => {
      installNative(inner, { ...deps, zeroEjects: false });
      done();
    },
    { prefix: "/api" },
  );
  const host = await app.listen({ host: "127.0.0.1", port: 0 });
  cleanUp(t, () => app.close());
  return { host, loaded };
}

test("interface 4, Native routes: Cline has its headers while a model loads, then the answer or the failure", async (t) => {
  const request = { model: "a", messages: [{ role: "user", content: "hi" }], stream: true as const };
  const slow = await startSlow(t);
  // Resolves with the headers, though nothing is loaded.
  const parts = await new Ollama({ host: slow.host }).chat(request);
  slow.loaded("loaded");
  let text = "";
  for await (const part of parts) text += part.message.content;
  assert.equal(text, "Here.");

  const failing = await startSlow(t);
  const none = await new Ollama({ host: failing.host }).chat(request);
  failing.loaded(new GatewayError("model_load_failed", "no memory"));
  await assert.rejects(
    async () => {
      for await (const _ of none) assert.fail("there is no answer");
    },
    { message: "no memory" },
  );
});
