// The ollama client's generating methods against the native family, at the root and below its prefix, on the real engine.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Ollama } from "ollama";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { loadedIds, startTestGateway, type TestGateway } from "../support/gateway.ts";
import {
  answersOf,
  gapFiller,
  insertModel,
  modelBytes,
  plainModel,
  talkingModel,
  weatherArguments,
  weatherTool,
} from "../support/models.ts";
import { pngAddress, projectorBytes } from "../support/projector.ts";

const hosts = ["", "/alpha"];

function clientOf(gateway: TestGateway, host: string): Ollama {
  return new Ollama({ host: gateway.url + host });
}

const messages = [{ role: "user", content: "hi" }];

const model = "acme/alpha:Q8_0";
const plain = "acme/plain:Q8_0";
const filler = "acme/filler:Q8_0";
const seeing = "acme/seeing:Q8_0";
const endless = "acme/endless:Q8_0";

async function chat(t: TestContext, gateway: TestGateway): Promise<void> {
  const says = answersOf("acme/alpha");
  for (const host of hosts) {
    await t.test(host === "" ? "at the root" : `below ${host}`, async (t) => {
      const client = clientOf(gateway, host);

      await t.test("an answer", async () => {
        const answer = await client.chat({ model: "alpha", messages });
        assert.deepEqual(
          [answer.model, answer.message.content, answer.done, answer.done_reason],
          ["alpha", says.hello, true, "stop"],
        );
        assert.ok(answer.eval_count > 0 && answer.prompt_eval_count > 0);
        // Nanoseconds: an answer of some milliseconds takes millions.
        assert.ok(answer.total_duration > 1e6 && answer.eval_duration <= answer.total_duration);
      });
      await t.test("a stream", async () => {
        let text = "";
        let ends = 0;
        const stream = await client.chat({ model, messages: [{ role: "user", content: "long" }], stream: true });
        for await (const part of stream) {
          text += part.message.content;
          if (part.done) ends++;
        }
        assert.deepEqual([text, ends], [says.long, 1]);
      });
      await t.test("a tool call, and the answer after it", async () => {
        const answer = await client.chat({ model, messages, tools: [weatherTool as never] });
        assert.deepEqual(
          answer.message.tool_calls?.map((call) => [call.function.name, call.function.arguments]),
          [["get_weather", weatherArguments]],
        );
        assert.equal(answer.done_reason, "stop");
        const after = await client.chat({
          model,
          tools: [weatherTool as never],
          messages: [...messages, answer.message, { role: "tool", content: "sunny", tool_name: "get_weather" }],
        });
        assert.equal(after.message.content, says.afterTool);
      });
      await t.test("thinking: on where nothing is said, off where it is said", async () => {
        const asked = [{ role: "user", content: "think" }];
        for (const think of [undefined, true]) {
          const { message } = await client.chat({ model, messages: asked, ...(think && { think }) });
          assert.deepEqual([message.thinking, message.content], [says.reasoning, says.afterReasoning]);
        }
        const { message } = await client.chat({ model, messages: asked, think: false });
        assert.equal(message.thinking, undefined);
      });
      await t.test("a format, a limit, log probabilities", async () => {
        const schema = {
          type: "object",
          properties: { a: { enum: [1] } },
          required: ["a"],
          additionalProperties: false,
        };
        const shaped = await client.chat({ model: plain, messages, format: schema });
        assert.deepEqual(JSON.parse(shaped.message.content), { a: 1 });
        const short = await client.chat({ model, messages, options: { num_predict: 2 } });
        assert.deepEqual([short.done_reason, short.eval_count], ["length", 2]);
        const probable = await client.chat({ model, messages, logprobs: true, top_logprobs: 2 });
        const [first] = probable.logprobs ?? [];
        assert.ok(first && first.logprob <= 0 && first.token !== "" && first.top_logprobs?.length === 2);
        const bare = await client.chat({ model, messages, logprobs: true });
        assert.equal(bare.logprobs?.[0]?.top_logprobs, undefined);
      });
      await t.test("what a model cannot do", async () => {
        const think = client.chat({ model: plain, messages, think: true });
        await assert.rejects(think, { message: `"${plain}" does not support thinking`, status_code: 400 });
        const tools = client.chat({ model: plain, messages, tools: [weatherTool as never] });
        await assert.rejects(tools, { message: `"${plain}" does not support tools`, status_code: 400 });
        const seeing = client.chat({ model: plain, messages: [{ role: "user", content: "?", images: [png()] }] });
        await assert.rejects(seeing, { message: `"${plain}" does not support vision`, status_code: 400 });
        const { message } = await client.chat({ model: plain, messages, think: false });
        assert.equal(message.content, answersOf("plain").hello);
      });
      await t.test("an unknown model, a wrong field", async () => {
        const nothing = client.chat({ model: "nothing", messages });
        await assert.rejects(nothing, { message: /^model 'nothing' not found/, status_code: 404 });
        const hot = client.chat({ model, messages, options: { temperature: "hot" as never } });
        await assert.rejects(hot, { message: "options.temperature must be a number", status_code: 400 });
      });
    });
  }
}

function png(): string {
  return pngAddress().replace(/^data:image\/png;base64,/, "");
}

async function generate(t: TestContext, gateway: TestGateway): Promise<void> {
  const says = answersOf("acme/alpha");
  for (const host of hosts) {
    await t.test(host === "" ? "at the root" : `below ${host}`, async (t) => {
      const client = clientOf(gateway, host);

      await t.test("an answer, with a system message", async () => {
        const answer = await client.generate({ model: "alpha", prompt: "hi", system: "Be kind." });
        assert.deepEqual(
          [answer.model, answer.response, answer.done, answer.done_reason, answer.context],
          ["alpha", says.hello, true, "stop", []],
        );
        const alone = await client.generate({ model, prompt: "hi" });
        assert.ok(alone.prompt_eval_count < answer.prompt_eval_count && alone.total_duration > 1e6);
      });
      await t.test("a stream, thinking apart", async () => {
        let text = "";
        let thinking = "";
        let ends = 0;
        for await (const part of await client.generate({ model, prompt: "think", stream: true })) {
          text += part.response;
          thinking += part.thinking ?? "";
          if (part.done) ends++;
        }
        assert.deepEqual([text, thinking, ends], [says.afterReasoning, says.reasoning, 1]);
      });
      await t.test("raw: the prompt as it stands", async () => {
        const answer = await client.generate({ model, prompt: "hi", raw: true, options: { num_predict: 3 } });
        // Two characters and the token that begins a text: nothing of a template.
        assert.ok(answer.prompt_eval_count <= 4, String(answer.prompt_eval_count));
        assert.deepEqual([answer.done_reason, answer.eval_count], ["length", 3]);
        const text = answer.response ?? "";
        assert.ok(text !== "" && says.hello.startsWith(text));
        const shaped = await client.generate({
          model,
          prompt: "x",
          raw: true,
          format: { enum: ["one"] },
          logprobs: true,
        });
        assert.equal(shaped.response, '"one"');
        assert.ok((shaped.logprobs?.length ?? 0) > 0);
        const both = client.generate({ model, prompt: "x", raw: true, system: "s" });
        await assert.rejects(both, { message: "raw mode does not support template, system, or context" });
      });
      await t.test("a gap filled in", async () => {
        const answer = await client.generate({ model: filler, prompt: "int add() {", suffix: "}" });
        assert.deepEqual([answer.response, answer.done_reason], [gapFiller, "stop"]);
        let text = "";
        for await (const part of await client.generate({ model: filler, prompt: "a", suffix: "b", stream: true }))
          text += part.response;
        assert.equal(text, gapFiller);
        const unable = client.generate({ model, prompt: "a", suffix: "b" });
        await assert.rejects(unable, { message: `"${model}" does not support insert`, status_code: 400 });
      });
      await t.test("an image", async () => {
        const answer = await client.generate({ model: seeing, prompt: "what?", images: [png()] });
        assert.equal(answer.response, answersOf("seeing").hello);
        const unable = client.generate({ model, prompt: "what?", images: [png()] });
        await assert.rejects(unable, { message: `"${model}" does not support vision`, status_code: 400 });
      });
      await t.test("a template of the client's", async () => {
        const refused = client.generate({ model, prompt: "hi", template: "{{ .Prompt }}" });
        await assert.rejects(refused, { message: /^template is not supported/, status_code: 400 });
      });
      await t.test("an empty prompt loads, and with keep_alive 0 unloads", async () => {
        const load = await client.generate({ model, prompt: "" });
        assert.deepEqual([load.response, load.done, load.done_reason], ["", true, "load"]);
        assert.ok((await loadedIds(gateway)).includes(model));
        const unload = await client.generate({ model, prompt: "", keep_alive: 0 });
        assert.deepEqual([unload.done, unload.done_reason], [true, "unload"]);
        assert.ok(!(await loadedIds(gateway)).includes(model));
      });
    });
  }
}

async function abort(gateway: TestGateway): Promise<void> {
  for (const host of hosts) {
    const client = clientOf(gateway, host);
    const read = async (): Promise<void> => {
      const stream = await client.chat({
        model: endless,
        messages: [{ role: "user", content: "forever" }],
        stream: true,
      });
      for await (const _part of stream) client.abort();
    };
    await assert.rejects(read(), { name: "AbortError" });
    await gateway.until("idle", ({ inFlight }) => Object.keys(inFlight).length === 0);
  }
}

test("the ollama client's generating methods", async (t) => {
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/alpha");
  const models = {
    plain: plainModel("plain"),
    filler: insertModel("filler"),
    seeing: talkingModel("seeing"),
    endless: talkingModel("endless", { contextLength: 131_072 }),
  };
  for (const [name, each] of Object.entries(models))
    await cacheModel(folders, `acme/${name}`, `${name}-Q8_0.gguf`, modelBytes(each));
  await cacheModel(folders, "acme/seeing", "mmproj-F16.gguf", projectorBytes());
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  await t.test("interface 4, Native routes: chat", (t) => chat(t, gateway));
  await t.test("interface 4, Native routes: generate", (t) => generate(t, gateway));
  await t.test("abort ends the streams of the client, and with them the generations", () => abort(gateway));
});
