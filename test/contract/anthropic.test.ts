// Anthropic's client against /messages, at its prefix and at the root, on the real engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf, weatherArguments, weatherTool } from "../support/models.ts";

test("interface 4, Chat and model list: Anthropic's client", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${model}", ctxSize: 2048, preset: { threads: 1, threads-batch: 1 } }]\n`,
  });
  await gateway.converged();
  const says = answersOf("acme/alpha");
  // The client appends /v1/messages to its base address.
  for (const base of ["/beta", ""]) {
    await t.test(`${base}/v1/messages`, async (t) => {
      const client = new Anthropic({ baseURL: gateway.url + base, apiKey: "none", maxRetries: 0 });
      const ask = { model, max_tokens: 200, messages: [{ role: "user" as const, content: "hi" }] };
      const tools = [
        {
          name: weatherTool.function.name,
          description: weatherTool.function.description,
          input_schema: { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] },
        },
      ];

      await t.test("an answer", async () => {
        const answer = await client.messages.create({ ...ask, model: `${model}.gguf` });
        assert.deepEqual(
          [answer.role, answer.stop_reason, answer.content],
          ["assistant", "end_turn", [{ type: "text", text: says.hello }]],
        );
        assert.ok(answer.usage.output_tokens > 0);
        const short = await client.messages.create({ ...ask, max_tokens: 2 });
        assert.equal(short.stop_reason, "max_tokens");
      });
      await t.test("a stream, with thinking", async () => {
        const stream = client.messages.stream({ ...ask, messages: [{ role: "user", content: "think" }] });
        const { content, stop_reason } = await stream.finalMessage();
        assert.equal(stop_reason, "end_turn");
        assert.deepEqual(
          content.map((block) =>
            block.type === "thinking" ? block.thinking : block.type === "text" ? block.text : "",
          ),
          [says.reasoning, says.afterReasoning],
        );
      });
      await t.test("a tool call, streamed and not, and the answer after it", async () => {
        const answer = await client.messages.create({ ...ask, tools });
        const streamed = await client.messages.stream({ ...ask, tools }).finalMessage();
        for (const { content, stop_reason } of [answer, streamed]) {
          const [call] = content;
          assert.ok(call?.type === "tool_use");
          assert.deepEqual([stop_reason, call.name, call.input], ["tool_use", "get_weather", weatherArguments]);
        }
        const [call] = answer.content;
        assert.ok(call?.type === "tool_use");
        const after = await client.messages.create({
          ...ask,
          tools,
          messages: [
            ...ask.messages,
            { role: "assistant", content: [{ type: "tool_use", id: call.id, name: call.name, input: call.input }] },
            { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "sunny" }] },
          ],
        });
        assert.deepEqual(after.content, [{ type: "text", text: says.afterTool }]);
      });
      await t.test("tokens are counted", async () => {
        const { input_tokens } = await client.messages.countTokens({ model, messages: ask.messages });
        assert.ok(input_tokens > 10);
      });
      await t.test("errors", async () => {
        await assert.rejects(client.messages.create({ ...ask, model: "acme/alpa" }), (error: unknown) => {
          assert.ok(error instanceof Anthropic.NotFoundError);
          assert.equal(error.type, "not_found_error");
          assert.match(error.message, /did you mean acme\/alpha:Q8_0/);
          return true;
        });
        await assert.rejects(client.messages.countTokens({ messages: ask.messages } as never), (error: unknown) => {
          assert.ok(error instanceof Anthropic.BadRequestError);
          assert.equal(error.type, "invalid_request_error");
          return true;
        });
        const content = "many words ".repeat(2_000);
        for (const stream of [true, false]) {
          const request = client.messages.create({ ...ask, stream, messages: [{ role: "user", content }] });
          await assert.rejects(request, (error: unknown) => {
            assert.ok(error instanceof Anthropic.BadRequestError);
            const { error: body } = error.error as { error: { type: string; code: string } };
            assert.deepEqual([body.type, body.code], ["invalid_request_error", "context_length_exceeded"]);
            return true;
          });
        }
      });
      await t.test("models", async () => {
        const ids: string[] = [];
        for await (const entry of client.models.list()) ids.push(entry.id);
        assert.deepEqual(ids, [model]);
        assert.equal((await client.models.retrieve(model)).id, model);
      });
      await t.test("an aborted stream", async () => {
        const stream = client.messages.stream({ ...ask, messages: [{ role: "user", content: "long" }] });
        for await (const _ of stream) break;
        stream.abort();
        await gateway.until("released", (status) => Object.keys(status.inFlight).length === 0);
      });
    });
  }
});
