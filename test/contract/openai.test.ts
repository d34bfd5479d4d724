// The openai client against the compatible family, at its prefix and at the root, on the real engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { cacheTalker, makeFolders, startTestGateway } from "../support/gateway.ts";
import { answersOf, weatherArguments, weatherTool } from "../support/models.ts";

test("chat, streams, tools, models and errors", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${model}", ctxSize: 2048 }]\n`,
  });
  await gateway.converged();
  const says = answersOf("acme/alpha");
  for (const prefix of ["/beta/v1", "/v1"]) {
    await t.test(prefix, async (t) => {
      const client = new OpenAI({ baseURL: gateway.url + prefix, apiKey: "none", maxRetries: 0 });
      const messages = [{ role: "user" as const, content: "hi" }];

      await t.test("an answer", async () => {
        const answer = await client.chat.completions.create({ model, messages });
        assert.equal(answer.choices[0]?.message.content, says.hello);
        assert.equal(answer.choices[0]?.finish_reason, "stop");
        assert.ok((answer.usage?.completion_tokens ?? 0) > 0);
      });
      await t.test("a stream with usage", async () => {
        let text = "";
        let usage: unknown = null;
        for await (const chunk of await client.chat.completions.create({
          model: `${model}.gguf`,
          messages,
          stream: true,
          stream_options: { include_usage: true },
        })) {
          text += chunk.choices[0]?.delta.content ?? "";
          usage = chunk.usage ?? usage;
        }
        assert.equal(text, says.hello);
        assert.ok(usage);
      });
      await t.test("a tool call, streamed and not, and the answer after it", async () => {
        const tools = [weatherTool as unknown as OpenAI.Chat.ChatCompletionTool];
        const answer = await client.chat.completions.create({ model, messages, tools });
        const [call] = answer.choices[0]?.message.tool_calls ?? [];
        assert.ok(call?.type === "function");
        assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["get_weather", weatherArguments]);
        const streamed = client.chat.completions.stream({ model, messages, tools });
        const [again] = (await streamed.finalChatCompletion()).choices[0]?.message.tool_calls ?? [];
        assert.ok(again?.type === "function");
        assert.deepEqual(JSON.parse(again.function.arguments), weatherArguments);
        const after = await client.chat.completions.create({
          model,
          tools,
          messages: [
            ...messages,
            { role: "assistant", tool_calls: [call] },
            { role: "tool", tool_call_id: call.id, content: "sunny" },
          ],
        });
        assert.equal(after.choices[0]?.message.content, says.afterTool);
      });
      await t.test("models", async () => {
        const list = await client.models.list();
        assert.deepEqual(
          list.data.map((entry) => entry.id),
          [model],
        );
        const [entry] = list.data as unknown as { context_length: number; n_ctx_train: number; loaded: boolean }[];
        assert.deepEqual([entry?.context_length, entry?.n_ctx_train, entry?.loaded], [2048, 8192, true]);
        assert.equal((await client.models.retrieve(model)).id, model);
      });
      await t.test("errors", async () => {
        await assert.rejects(client.chat.completions.create({ model: "acme/alpa", messages }), (error: unknown) => {
          assert.ok(error instanceof OpenAI.NotFoundError);
          assert.equal(error.code, "model_not_found");
          assert.match(error.message, /did you mean acme\/alpha:Q8_0/);
          return true;
        });
        await assert.rejects(client.chat.completions.create({ messages } as never), OpenAI.BadRequestError);
      });
      await t.test("an aborted stream", async () => {
        const stream = await client.chat.completions.create({
          model,
          messages: [{ role: "user", content: "long" }],
          stream: true,
        });
        for await (const _ of stream) break;
        stream.controller.abort();
        await gateway.until("released", (status) => Object.keys(status.inFlight).length === 0);
      });
    });
  }
});
