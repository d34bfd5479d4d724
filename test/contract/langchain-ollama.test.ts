// LangChain's Ollama package, at each base address it can be given, on the real engine.
import assert from "node:assert/strict";
import type { AIMessageChunk } from "@langchain/core/messages";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOllama, Ollama, OllamaEmbeddings } from "@langchain/ollama";
import {
  type Address,
  bearer,
  checkUsage,
  contractTest,
  jsonAnswer,
  jsonSchema,
  nativeBases,
} from "../support/contract.ts";
import { weatherArguments, weatherTool } from "../support/models.ts";

function settings({ base, key }: Address): { baseUrl: string; headers: Record<string, string>; maxRetries: number } {
  return { baseUrl: base, headers: bearer({ key }), maxRetries: 0 };
}

contractTest("interface 1, Route families: @langchain/ollama", async (t, contract) => {
  const { says, talker: model } = contract;
  for (const address of contract.addresses(nativeBases)) {
    await t.test(address.label, async (t) => {
      const chat = new ChatOllama({ ...settings(address), model });

      await t.test("an answer with its usage", async () => {
        const answer = await chat.invoke("hi");
        assert.equal(answer.content, says.hello);
        checkUsage(answer);
        assert.equal(answer.response_metadata["done_reason"], "stop");
      });
      await t.test("a stream", async () => {
        const pieces: string[] = [];
        for await (const piece of await chat.stream("long")) pieces.push(piece.text);
        assert.equal(pieces.join(""), says.long);
        assert.ok(pieces.length > 100, `${pieces.length} pieces`);
      });
      await t.test("a tool call, streamed and not, and the answer after it", async () => {
        const bound = chat.bindTools([weatherTool]);
        const asked = new HumanMessage("weather?");
        const answer = await bound.invoke([asked]);
        const [toolCall] = answer.tool_calls ?? [];
        assert.deepEqual([toolCall?.name, toolCall?.args], ["get_weather", weatherArguments]);
        const after = await bound.invoke([
          asked,
          answer,
          new ToolMessage({ content: "sunny", tool_call_id: toolCall?.id ?? "", name: "get_weather" }),
        ]);
        assert.equal(after.content, says.afterTool);
        let whole: AIMessageChunk | undefined;
        for await (const piece of await bound.stream([asked])) whole = whole?.concat(piece) ?? piece;
        assert.deepEqual(
          whole?.tool_calls?.map(({ name, args }) => [name, args]),
          [["get_weather", weatherArguments]],
        );
      });
      await t.test("structured output", async () => {
        const answer = await chat.withStructuredOutput(jsonSchema).invoke("as json, please");
        assert.deepEqual(answer, jsonAnswer);
        const loose = await chat.withStructuredOutput(jsonSchema, { method: "jsonMode" }).invoke("as json, please");
        assert.deepEqual(loose, jsonAnswer);
      });
      await t.test("thinking", async () => {
        const answer = await new ChatOllama({ ...settings(address), model, think: true }).invoke("think");
        assert.deepEqual(
          [answer.additional_kwargs["reasoning_content"], answer.content],
          [says.reasoning, says.afterReasoning],
        );
        const plain = await new ChatOllama({ ...settings(address), model, think: false }).invoke("think");
        assert.equal(plain.additional_kwargs["reasoning_content"], undefined);
      });
      await t.test("a completion, whole and streamed", async () => {
        const completion = new Ollama({ ...settings(address), model });
        assert.equal(await completion.invoke("hi"), says.hello);
        let text = "";
        for await (const piece of await completion.stream("long")) text += piece;
        assert.equal(text, says.long);
      });
      await t.test("embeddings", async () => {
        const embeddings = new OllamaEmbeddings({ ...settings(address), model: contract.embedder });
        const [one = [], other = []] = await embeddings.embedDocuments(["a cat", "another thing"]);
        assert.ok(one.length > 0 && one.length === other.length);
        assert.notDeepEqual(one, other);
        const again = await embeddings.embedQuery("a cat");
        assert.equal(again.length, one.length);
        assert.ok(again.every((value, index) => Math.abs(value - (one[index] ?? 0)) < 1e-4));
      });
      await t.test("a model that is here is not pulled first", async () => {
        const checking = new ChatOllama({ ...settings(address), model, checkOrPullModel: true });
        assert.equal((await checking.invoke("hi")).content, says.hello);
      });
      await t.test("an unknown model", async () => {
        const wrong = new ChatOllama({ ...settings(address), model: "nothing" });
        await assert.rejects(wrong.invoke("hi"), (error: unknown) => {
          assert.ok(error instanceof Error);
          assert.match(error.message, /model 'nothing' not found/);
          assert.equal((error as Error & { status_code?: number }).status_code, 404);
          return true;
        });
      });
      // Its streams notice an abort only with the next piece that is read; an answer that is awaited reads on.
      await t.test("an aborted call ends the generation", async () => {
        const leaving = new AbortController();
        const endless = new ChatOllama({ ...settings(address), model: contract.endless });
        const answer = endless.invoke("forever", { signal: leaving.signal });
        await contract.generating(contract.endless);
        leaving.abort();
        // It resolves with what had come, if anything.
        await answer;
        await contract.idle();
      });
    });
  }
});
