// The openai client against the compatible family, at its prefix and at the root, on the real engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf, embeddingModel, modelBytes, plainModel, weatherArguments, weatherTool } from "../support/models.ts";

test("interface 4, Chat and model list: the openai client", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  // It cannot think aloud, which a schema leaves free.
  const plain = "acme/plain:Q8_0";
  await cacheModel(folders, "acme/plain", "plain-Q8_0.gguf", modelBytes(plainModel("plain")));
  const embedder = "acme/embedder:Q8_0";
  await cacheModel(folders, "acme/embedder", "embedder-Q8_0.gguf", modelBytes(embeddingModel("embedder")));
  // One thread: two spin while they wait for each other.
  const preset = "{ threads: 1, threads-batch: 1 }";
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${model}", ctxSize: 2048, preset: ${preset} }, { id: "${embedder}", preset: ${preset} }]\n`,
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
      await t.test("reasoning, log probabilities, several choices, a limit", async () => {
        const think = { model, messages: [{ role: "user" as const, content: "think" }] };
        const { choices } = await client.chat.completions.create(think);
        const message = choices[0]?.message as { content: string; reasoning_content?: string } | undefined;
        assert.deepEqual([message?.reasoning_content, message?.content], [says.reasoning, says.afterReasoning]);
        let reasoning = "";
        for await (const chunk of await client.chat.completions.create({ ...think, stream: true }))
          reasoning += (chunk.choices[0]?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? "";
        assert.equal(reasoning, says.reasoning);
        const answer = await client.chat.completions.create({
          model,
          messages,
          logprobs: true,
          top_logprobs: 1,
          n: 2,
          max_tokens: 2,
        });
        assert.deepEqual(
          answer.choices.map((choice) => [choice.finish_reason, choice.logprobs?.content?.length]),
          [
            ["length", 2],
            ["length", 2],
          ],
        );
      });
      await t.test("stop words and a grammar", async () => {
        const stopped = await client.chat.completions.create({ model, messages, stop: [" running"] });
        assert.equal(stopped.choices[0]?.message.content, says.hello.slice(0, says.hello.indexOf(" running")));
        const held = await client.chat.completions.create({ model, messages, grammar: 'root ::= "yes"' } as never);
        assert.equal((held as OpenAI.ChatCompletion).choices[0]?.message.content, "yes");
      });
      await t.test("a schema holds whatever the model would say", async () => {
        const answer = await client.chat.completions.create({
          model: plain,
          messages,
          response_format: {
            type: "json_schema",
            json_schema: { name: "one", strict: true, schema: { const: "only this" } },
          },
        });
        assert.equal(JSON.parse(answer.choices[0]?.message.content ?? ""), "only this");
      });
      await t.test("completions", async () => {
        const answer = await client.completions.create({ model, prompt: "hi", max_tokens: 3 });
        assert.match(answer.choices[0]?.text ?? "", /^Hello/);
        let text = "";
        for await (const part of await client.completions.create({ model, prompt: "hi", max_tokens: 3, stream: true }))
          text += part.choices[0]?.text ?? "";
        assert.equal(text, answer.choices[0]?.text);
      });
      await t.test("responses, with a tool and as a stream", async () => {
        const answer = await client.responses.create({ model, input: "hi" });
        assert.deepEqual([answer.output_text, answer.status], [says.hello, "completed"]);
        const { name, description, parameters } = weatherTool.function;
        const tool = { type: "function" as const, name, description, parameters, strict: false };
        const called = await client.responses.create({ model, input: "hi", tools: [tool] });
        const call = called.output.find((item) => item.type === "function_call");
        assert.deepEqual([call?.name, JSON.parse(call?.arguments ?? "")], [name, weatherArguments]);
        let text = "";
        let last = "";
        for await (const event of await client.responses.create({ model, input: "long", stream: true })) {
          if (event.type === "response.output_text.delta") text += event.delta;
          last = event.type;
        }
        assert.deepEqual([text, last], [says.long, "response.completed"]);
        // The client's own accumulator: it finds items and parts by their indexes.
        for (const [input, tools, types] of [
          ["think", [], ["reasoning", "message"]],
          ["hi", [tool], ["function_call"]],
        ] as const) {
          const whole = await client.responses.stream({ model, input, tools: [...tools] }).finalResponse();
          assert.deepEqual([whole.output.map(({ type }) => type), whole.model], [types, model]);
        }
      });
      await t.test("embeddings, as numbers and as the client asks by itself", async () => {
        const numbers = await client.embeddings.create({
          model: embedder,
          input: ["one", "two"],
          encoding_format: "float",
        });
        // By default it asks for base64 and decodes that itself.
        const decoded = await client.embeddings.create({ model: embedder, input: ["one", "two"] });
        assert.equal(numbers.data.length, 2);
        for (const [index, { embedding }] of numbers.data.entries()) {
          assert.equal(embedding.length, 64);
          assert.deepEqual(decoded.data[index]?.embedding.map(Math.fround), embedding.map(Math.fround));
        }
        await assert.rejects(client.embeddings.create({ model, input: "one" }), (error: unknown) => {
          assert.ok(error instanceof OpenAI.BadRequestError);
          assert.deepEqual([error.code, error.type], ["not_capable", "invalid_request_error"]);
          return true;
        });
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
          [model, embedder, plain],
        );
        const [entry] = list.data as unknown as { context_length: number; n_ctx_train: number; loaded: boolean }[];
        assert.deepEqual([entry?.context_length, entry?.n_ctx_train, entry?.loaded], [2048, 8192, true]);
        for (const name of [model, `${model}.gguf`, "alpha"])
          assert.deepEqual(await client.models.retrieve(name), list.data[0], name);
        await assert.rejects(client.models.retrieve("nothing"), OpenAI.NotFoundError);
      });
      await t.test("errors", async () => {
        await assert.rejects(client.chat.completions.create({ model: "acme/alpa", messages }), (error: unknown) => {
          assert.ok(error instanceof OpenAI.NotFoundError);
          assert.deepEqual([error.code, error.param], ["model_not_found", "model"]);
          assert.match(error.message, /did you mean acme\/alpha:Q8_0/);
          return true;
        });
        await assert.rejects(client.chat.completions.create({ messages } as never), OpenAI.BadRequestError);
        await assert.rejects(client.chat.completions.create({ model } as never), (error: unknown) => {
          assert.ok(error instanceof OpenAI.BadRequestError);
          assert.equal(error.code, "invalid_request");
          return true;
        });
        const content = "many words ".repeat(2_000);
        for (const request of [
          () => client.chat.completions.create({ model, messages: [{ role: "user", content }] }),
          () => client.responses.create({ model, input: content, stream: true }),
        ]) {
          await assert.rejects(request(), (error: unknown) => {
            assert.ok(error instanceof OpenAI.BadRequestError);
            assert.equal(error.code, "context_length_exceeded");
            return true;
          });
        }
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
