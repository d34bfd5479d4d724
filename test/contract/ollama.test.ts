// The ollama client against the native family, on the real engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ollama } from "ollama";
import { cacheTalker, makeFolders, startTestGateway } from "../support/gateway.ts";
import { answersOf, weatherArguments, weatherTool } from "../support/models.ts";

test("chat, streams, tools, thinking, list and ps", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const says = answersOf("acme/alpha");
  const client = new Ollama({ host: gateway.url });
  const messages = [{ role: "user", content: "hi" }];

  await t.test("an answer", async () => {
    const answer = await client.chat({ model, messages });
    assert.deepEqual([answer.message.content, answer.done, answer.done_reason], [says.hello, true, "stop"]);
    assert.ok(answer.eval_count > 0 && answer.total_duration > 0);
  });
  await t.test("a stream", async () => {
    let text = "";
    let done = false;
    for await (const part of await client.chat({
      model,
      messages: [{ role: "user", content: "long" }],
      stream: true,
    })) {
      text += part.message.content;
      done = part.done;
    }
    assert.deepEqual([text, done], [says.long, true]);
  });
  await t.test("a tool call, and the answer after it", async () => {
    const answer = await client.chat({ model, messages, tools: [weatherTool as never] });
    assert.deepEqual(
      answer.message.tool_calls?.map((call) => [call.function.name, call.function.arguments]),
      [["get_weather", weatherArguments]],
    );
    const after = await client.chat({
      model,
      tools: [weatherTool as never],
      messages: [...messages, answer.message, { role: "tool", content: "sunny", tool_name: "get_weather" }],
    });
    assert.equal(after.message.content, says.afterTool);
  });
  await t.test("thinking", async () => {
    const answer = await client.chat({ model, messages: [{ role: "user", content: "think" }], think: true });
    assert.deepEqual([answer.message.thinking, answer.message.content], [says.reasoning, says.afterReasoning]);
  });
  await t.test("list and ps", async () => {
    const { models } = await client.list();
    assert.deepEqual(
      models.map((entry) => [entry.name, entry.details.format, entry.details.quantization_level]),
      [[model, "gguf", "Q8_0"]],
    );
    const running = await client.ps();
    assert.deepEqual(
      running.models.map((entry) => entry.name),
      [model],
    );
    assert.ok(new Date(running.models[0]?.expires_at ?? "").getTime() > Date.now());
  });
  await t.test("an unknown model", async () => {
    await assert.rejects(client.chat({ model: "nothing", messages }), { message: /model 'nothing' not found/ });
  });
});
