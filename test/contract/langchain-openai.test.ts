// LangChain's OpenAI package, at each base address it can be given, on the real engine.
import assert from "node:assert/strict";
import { AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { type Address, checkUsage, compatBases, contractTest, jsonAnswer, jsonSchema } from "../support/contract.ts";
import { weatherArguments, weatherTool } from "../support/models.ts";

interface Settings {
  readonly apiKey: string;
  readonly configuration: { readonly baseURL: string };
  readonly maxRetries: number;
}

/** Without a key configured any text is one: the client insists on sending something. */
function settings({ base, key }: Address): Settings {
  return { apiKey: key ?? "none", configuration: { baseURL: base }, maxRetries: 0 };
}

contractTest("interface 1, Route families: @langchain/openai", async (t, contract) => {
  const { says, talker: model } = contract;
  for (const address of contract.addresses(compatBases)) {
    await t.test(address.label, async (t) => {
      const chat = new ChatOpenAI({ ...settings(address), model });

      await t.test("an answer with its usage", async () => {
        const answer = await chat.invoke("hi");
        assert.equal(answer.content, says.hello);
        checkUsage(answer);
        assert.equal(answer.response_metadata["finish_reason"], "stop");
      });
      await t.test("a stream with its usage", async () => {
        let whole = new AIMessageChunk("");
        let pieces = 0;
        for await (const piece of await chat.stream("long")) {
          whole = whole.concat(piece);
          pieces += 1;
        }
        assert.equal(whole.content, says.long);
        assert.ok(pieces > 100, `${pieces} pieces`);
        checkUsage(whole);
      });
      await t.test("a tool call, streamed and not, and the answer after it", async () => {
        const bound = chat.bindTools([weatherTool]);
        const asked = new HumanMessage("weather?");
        const answer = await bound.invoke([asked]);
        const [toolCall] = answer.tool_calls ?? [];
        assert.deepEqual([toolCall?.name, toolCall?.args], ["get_weather", weatherArguments]);
        const result = new ToolMessage({ content: "sunny", tool_call_id: toolCall?.id ?? "" });
        assert.equal((await bound.invoke([asked, answer, result])).content, says.afterTool);
        let whole = new AIMessageChunk("");
        for await (const piece of await bound.stream([asked])) whole = whole.concat(piece);
        assert.deepEqual(
          whole.tool_calls?.map(({ name, args }) => [name, args]),
          [["get_weather", weatherArguments]],
        );
      });
      await t.test("structured output", async () => {
        const answer = await chat.withStructuredOutput(jsonSchema, { method: "jsonSchema" }).invoke("as json, please");
        assert.deepEqual(answer, jsonAnswer);
        const loose = await chat.withStructuredOutput(jsonSchema, { method: "jsonMode" }).invoke("as json, please");
        assert.deepEqual(loose, jsonAnswer);
      });
      await t.test("embeddings, as numbers and in the encoding that it chooses", async () => {
        for (const encodingFormat of ["float", undefined] as const) {
          const embeddings = new OpenAIEmbeddings({
            ...settings(address),
            model: contract.embedder,
            ...(encodingFormat === undefined ? {} : { encodingFormat }),
          });
          const [one = [], other = []] = await embeddings.embedDocuments(["a cat", "another thing"]);
          assert.ok(one.length > 0 && one.length === other.length, String(encodingFormat));
          assert.ok(one.every((value) => Number.isFinite(value)));
          assert.notDeepEqual(one, other);
        }
      });
      await t.test("the responses API", async () => {
        const responses = new ChatOpenAI({ ...settings(address), model, useResponsesApi: true });
        assert.equal((await responses.invoke("hi")).text, says.hello);
        let text = "";
        for await (const piece of await responses.stream("long")) text += piece.text;
        assert.equal(text, says.long);
      });
      await t.test("an unknown model", async () => {
        const wrong = new ChatOpenAI({ ...settings(address), model: "nothing" });
        await assert.rejects(wrong.invoke("hi"), (error: unknown) => {
          assert.ok(error instanceof Error);
          assert.match(error.message, /model 'nothing' not found/);
          assert.equal((error as Error & { status?: number }).status, 404);
          return true;
        });
      });
      await t.test("an aborted stream ends the generation", async () => {
        const leaving = new AbortController();
        const endless = new ChatOpenAI({ ...settings(address), model: contract.endless });
        const stream = await endless.stream("forever", { signal: leaving.signal });
        await assert.rejects(async () => {
          for await (const _ of stream) leaving.abort();
        });
        await contract.idle();
      });
    });
  }
});
