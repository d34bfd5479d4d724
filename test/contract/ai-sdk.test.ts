// The Vercel AI SDK with its providers for OpenAI-compatible servers and for OpenAI's own responses, on the real engine.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  embed,
  embedMany,
  generateObject,
  generateText,
  stepCountIs,
  streamObject,
  streamText,
  tool,
  jsonSchema as toSchema,
} from "ai";
import { compatBases, contractTest, jsonAnswer, jsonSchema } from "../support/contract.ts";
import { weatherArguments, weatherTool } from "../support/models.ts";

const schema = toSchema<typeof jsonAnswer>({ ...jsonSchema, required: [...jsonSchema.required] });

contractTest("interface 4, Chat and model list: the AI SDK", async (t, contract) => {
  const { says } = contract;
  for (const { label, base, key } of contract.addresses(compatBases)) {
    await t.test(label, async (t) => {
      const provider = createOpenAICompatible({
        name: "gateway",
        baseURL: base,
        includeUsage: true,
        supportsStructuredOutputs: true,
        ...(key === null ? {} : { apiKey: key }),
      });
      const model = provider(contract.talker);
      const asked: unknown[] = [];
      const tools = {
        get_weather: tool({
          description: weatherTool.function.description,
          inputSchema: toSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } }),
          execute: (input) => {
            asked.push(input);
            return "sunny";
          },
        }),
      };

      await t.test("generateText, with its usage", async () => {
        const { text, usage, finishReason } = await generateText({ model, prompt: "hi", maxRetries: 0 });
        assert.deepEqual([text, finishReason], [says.hello, "stop"]);
        assert.ok((usage.inputTokens ?? 0) > 0 && (usage.outputTokens ?? 0) > 0);
      });
      await t.test("streamText, with its usage", async () => {
        const answer = streamText({ model, prompt: "long", maxRetries: 0 });
        let pieces = 0;
        let text = "";
        for await (const piece of answer.textStream) {
          text += piece;
          pieces += 1;
        }
        assert.equal(text, says.long);
        assert.ok(pieces > 100, `${pieces} pieces`);
        const { inputTokens = 0, outputTokens = 0 } = await answer.usage;
        assert.ok(inputTokens > 0 && outputTokens > 0);
      });
      await t.test("a tool that the SDK runs, streamed and not", async () => {
        const rounds = { model, tools, prompt: "weather?", stopWhen: stepCountIs(2), maxRetries: 0 };
        const { text, steps } = await generateText(rounds);
        assert.deepEqual([text, steps.length], [says.afterTool, 2]);
        assert.equal(await streamText(rounds).text, says.afterTool);
        assert.deepEqual(asked, [weatherArguments, weatherArguments]);
      });
      await t.test("a tool that the SDK runs, by OpenAI's responses, streamed and not", async () => {
        asked.length = 0;
        const openai = createOpenAI({ baseURL: base, apiKey: key ?? "none" });
        const rounds = {
          model: openai.responses(contract.talker),
          tools,
          prompt: "weather?",
          stopWhen: stepCountIs(2),
          maxRetries: 0,
        };
        const { text, steps } = await generateText(rounds);
        assert.deepEqual([text, steps.length], [says.afterTool, 2]);
        const streamed = streamText(rounds);
        assert.equal(await streamed.text, says.afterTool);
        const { modelId, timestamp } = await streamed.response;
        assert.equal(modelId, contract.talker);
        assert.ok(Math.abs(timestamp.getTime() - Date.now()) < 60_000, String(timestamp));
        assert.deepEqual(asked, [weatherArguments, weatherArguments]);
        // The engine does not take the form in which the SDK's responses have earlier answers; its chat completions are for that.
        const { messages } = await streamed.response;
        const further = await generateText({
          model: openai.chat(contract.talker),
          messages: [{ role: "user", content: "weather?" }, ...messages, { role: "user", content: "hi" }],
          maxRetries: 0,
        });
        assert.equal(further.text, says.hello);
      });
      await t.test("objects by a schema, streamed and not", async () => {
        const wanted = { schema, prompt: "as json, please", maxRetries: 0 } as const;
        assert.deepEqual((await generateObject({ model, ...wanted })).object, jsonAnswer);
        const streamed = streamObject({ model, ...wanted });
        let last: unknown;
        for await (const partial of streamed.partialObjectStream) last = partial;
        assert.deepEqual([last, await streamed.object], [jsonAnswer, jsonAnswer]);
        const loose = createOpenAICompatible({ name: "loose", baseURL: base, apiKey: key ?? "none" });
        assert.deepEqual((await generateObject({ model: loose(contract.talker), ...wanted })).object, jsonAnswer);
      });
      await t.test("reasoning", async () => {
        const answer = await generateText({ model, prompt: "think", maxRetries: 0 });
        assert.deepEqual([answer.reasoningText, answer.text], [says.reasoning, says.afterReasoning]);
        const streamed = streamText({ model, prompt: "think", maxRetries: 0 });
        assert.deepEqual([await streamed.reasoningText, await streamed.text], [says.reasoning, says.afterReasoning]);
      });
      await t.test("embed and embedMany", async () => {
        const embedder = provider.embeddingModel(contract.embedder);
        const { embedding, usage } = await embed({ model: embedder, value: "a cat", maxRetries: 0 });
        assert.ok(embedding.length > 0 && usage.tokens > 0);
        const { embeddings } = await embedMany({ model: embedder, values: ["a cat", "another thing"], maxRetries: 0 });
        assert.deepEqual([embeddings.length, embeddings[0]?.length], [2, embedding.length]);
        assert.notDeepEqual(embeddings[0], embeddings[1]);
      });
      await t.test("an unknown model", async () => {
        const wrong = generateText({ model: provider("nothing"), prompt: "hi", maxRetries: 0 });
        await assert.rejects(wrong, (error: unknown) => {
          assert.ok(APICallError.isInstance(error));
          assert.deepEqual([error.statusCode, error.isRetryable], [404, false]);
          assert.match(error.message, /model 'nothing' not found/);
          return true;
        });
      });
      await t.test("an aborted stream ends the generation", async () => {
        const leaving = new AbortController();
        const answer = streamText({
          model: provider(contract.endless),
          prompt: "forever",
          abortSignal: leaving.signal,
          maxRetries: 0,
        });
        for await (const part of answer.fullStream) if (part.type === "text-delta") leaving.abort();
        assert.ok(leaving.signal.aborted);
        await contract.idle();
      });
    });
  }
});
