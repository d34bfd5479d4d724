// The computed models on the real llama-server, alone and behind its router: what they say, to the letter.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readProgress } from "../../src/engines/llama/computing.ts";
import { starterFileName, starterId, starterModel, starterSentence } from "../../src/starter/starter-model.ts";
import { cleanUp } from "../support/clean-up.ts";
import { startLlamaServer } from "../support/engine.ts";
import {
  answersOf,
  gapFiller,
  insertModel,
  plainModel,
  slowModel,
  talkingModel,
  weatherArguments,
  weatherTool,
  writeModelFile,
} from "../support/models.ts";
import { until } from "../support/scratch.ts";

interface ToolCall {
  readonly id?: string;
  readonly function: { readonly name?: string; readonly arguments?: string };
}
interface Message {
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly ToolCall[];
}
interface Reply {
  readonly choices: readonly {
    readonly message?: Message;
    readonly delta?: Message;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number };
}
interface Spoken {
  readonly content: string;
  readonly reasoning: string;
  readonly toolName: string;
  readonly toolArguments: string;
  readonly finishReason: string | null;
  readonly completionTokens: number;
  readonly frames: number;
}

async function post(url: string, path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(url + path, {
    method: "POST",
    // After a stream the engine closes its connection, which a next request on it may meet too late.
    headers: { "content-type": "application/json", connection: "close" },
    body: JSON.stringify(body),
    signal: signal ?? AbortSignal.timeout(300_000),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response;
}

/** One chat, streamed or not, as the same record. */
async function chat(url: string, request: Readonly<Record<string, unknown>>): Promise<Spoken> {
  const body = request["stream"] === true ? { ...request, stream_options: { include_usage: true } } : request;
  const text = await (await post(url, "/v1/chat/completions", body)).text();
  const frames = request["stream"] === true ? text.split("\n\n").filter((frame) => frame !== "") : [`data: ${text}`];
  if (request["stream"] === true) assert.equal(frames.pop(), "data: [DONE]", "the stream is whole");
  const spoken = { content: "", reasoning: "", toolName: "", toolArguments: "", completionTokens: 0 };
  let finishReason: string | null = null;
  for (const frame of frames) {
    const reply = JSON.parse(frame.replace(/^data: /, "")) as Reply;
    spoken.completionTokens = reply.usage?.completion_tokens ?? spoken.completionTokens;
    for (const choice of reply.choices) {
      const part = choice.delta ?? choice.message ?? {};
      spoken.content += part.content ?? "";
      spoken.reasoning += part.reasoning_content ?? "";
      for (const call of part.tool_calls ?? []) {
        spoken.toolName += call.function.name ?? "";
        spoken.toolArguments += call.function.arguments ?? "";
      }
      finishReason = choice.finish_reason ?? finishReason;
    }
  }
  return { ...spoken, finishReason, frames: frames.length };
}

function ask(text: string) {
  return { messages: [{ role: "user", content: text }] };
}

const afterTool = [
  { role: "user", content: "What is the weather?" },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } }],
  },
  { role: "tool", tool_call_id: "1", content: "sunny" },
];

async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "scripted-model-"));
  cleanUp(t, () => rm(folder, { recursive: true, force: true }));
  return folder;
}

test("alone: every script comes back exact, streamed or not, greedy or sampled", async (t) => {
  const path = join(await temporaryFolder(t), "alpha.gguf");
  await writeModelFile(path, talkingModel("alpha"));
  const { url } = await startLlamaServer(t, ["-m", path]);
  const answers = answersOf("alpha");
  const otherTool = {
    type: "function",
    function: { name: "read_file", parameters: { type: "object", properties: {} } },
  };
  const plain = { reasoning: "", toolName: "", toolArguments: "", finishReason: "stop" };
  const cases = [
    { request: ask("Hello"), expected: { ...plain, content: answers.hello } },
    { request: { messages: afterTool, tools: [weatherTool] }, expected: { ...plain, content: answers.afterTool } },
    { request: ask("a LONG one"), expected: { ...plain, content: answers.long } },
    {
      request: ask("think"),
      expected: { ...plain, content: answers.afterReasoning, reasoning: answers.reasoning },
    },
    {
      request: { ...ask("think"), chat_template_kwargs: { enable_thinking: false } },
      expected: { ...plain, content: answers.hello },
    },
    { request: { ...ask("Hello"), tools: [otherTool] }, expected: { ...plain, content: answers.hello } },
    {
      request: { ...ask("What is the weather?"), tools: [otherTool, weatherTool] },
      expected: { ...plain, content: "", toolName: "get_weather", finishReason: "tool_calls" },
    },
  ];
  for (const { request, expected } of cases) {
    for (const stream of [false, true]) {
      for (const sampling of [{}, { temperature: 0 }, { temperature: 1 }]) {
        const spoken = await chat(url, { ...request, ...sampling, stream });
        const { completionTokens, frames, toolArguments, ...said } = spoken;
        const { toolArguments: noArguments, ...wanted } = expected;
        assert.deepEqual(said, wanted);
        if (expected.toolName === "") assert.equal(toolArguments, noArguments);
        else assert.deepEqual(JSON.parse(toolArguments), weatherArguments);
        assert.ok(completionTokens > 0);
        if (stream && expected.content !== "") assert.ok(frames >= completionTokens, "a frame for each piece");
      }
    }
  }
});

test("alone: the endless script goes on until it is told to stop, and a raw prompt gets the default", async (t) => {
  const path = join(await temporaryFolder(t), "beta.gguf");
  await writeModelFile(path, talkingModel("beta"));
  const { url } = await startLlamaServer(t, ["-m", path]);
  const { forever, hello } = answersOf("beta");
  const spoken = await chat(url, { ...ask("forever"), max_tokens: 200, stream: true });
  assert.equal(spoken.completionTokens, 200);
  assert.equal(spoken.finishReason, "length");
  assert.equal(spoken.content, forever.repeat(200).slice(0, spoken.content.length));
  const raw = await (await post(url, "/v1/completions", { prompt: "Once upon a time", max_tokens: 50 })).json();
  assert.equal((raw as { choices: [{ text: string }] }).choices[0].text, hello);
});

test("alone: a plain template takes tools and thinking for nothing", async (t) => {
  const path = join(await temporaryFolder(t), "plain.gguf");
  await writeModelFile(path, plainModel("plain"));
  const { url } = await startLlamaServer(t, ["-m", path]);
  const { hello, long } = answersOf("plain");
  for (const request of [ask("think"), { ...ask("What is the weather?"), tools: [weatherTool] }]) {
    const { content, reasoning, toolName } = await chat(url, request);
    assert.deepEqual([content, reasoning, toolName], [hello, "", ""]);
  }
  assert.equal((await chat(url, ask("a long one"))).content, long);
  const props = (await (await fetch(`${url}/props`)).json()) as { chat_template_caps: Record<string, boolean> };
  assert.equal(props.chat_template_caps["supports_tools"], false);
});

test("alone: a gap is filled by the model that knows its tokens, and refused by another", async (t) => {
  const folder = await temporaryFolder(t);
  const gap = { input_prefix: "function add(a, b) { ", input_suffix: " }" };
  await writeModelFile(join(folder, "insert.gguf"), insertModel("insert"));
  const { url } = await startLlamaServer(t, ["-m", join(folder, "insert.gguf")]);
  const filled = (await (await post(url, "/infill", gap)).json()) as { content: string };
  assert.equal(filled.content, gapFiller);
  assert.equal((await chat(url, ask("Hello"))).content, answersOf("insert").hello, "and it talks as before");

  await writeModelFile(join(folder, "talker.gguf"), talkingModel("talker"));
  const other = await startLlamaServer(t, ["-m", join(folder, "talker.gguf")]);
  await assert.rejects(post(other.url, "/infill", gap), /501: .*prefix token is missing/);
});

test("alone: the slow model streams its first words long before its last", async (t) => {
  const path = join(await temporaryFolder(t), "slow.gguf");
  await writeModelFile(path, slowModel("slow"));
  const { url, pid } = await startLlamaServer(t, ["-m", path]);
  assert.equal((await chat(url, ask("Hello"))).content, answersOf("slow").hello);

  const response = await post(url, "/v1/chat/completions", { ...ask("forever"), stream: true });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  assert.ok(reader);
  let text = "";
  const started = performance.now();
  while (text.split("\n\n").length < 20) text += (await reader.read()).value ?? "";
  const perSecond = (20 / (performance.now() - started)) * 1000;
  await reader.cancel();

  // An answer that is sent whole is silent until its end: the gateway tells by this that the model does not hang.
  const progress = (): Promise<string | null> => readProgress({ origin: url, key: "", pid });
  const leaving = new AbortController();
  const whole = post(url, "/v1/chat/completions", ask("forever"), leaving.signal).catch(() => null);
  const first = await progress();
  await until("it computes", async () => (await progress()) !== first);
  leaving.abort();
  await whole;
  await until("it rests", async () => (await progress()) === (await progress()));
  t.diagnostic(`${perSecond.toFixed(0)} frames per second`);
  assert.ok(perSecond < 1000, "slow enough to be interrupted");
});

test("behind the router: two models of one cache and the starter each say their own", async (t) => {
  const cache = await temporaryFolder(t);
  const commit = "0".repeat(40);
  const snapshot = async (repo: string) => {
    const folder = join(cache, `models--${repo.replace("/", "--")}`);
    await mkdir(join(folder, "refs"), { recursive: true });
    await mkdir(join(folder, "snapshots", commit), { recursive: true });
    await writeFile(join(folder, "refs", "main"), commit);
    return join(folder, "snapshots", commit);
  };
  await writeModelFile(join(await snapshot("acme/alpha-GGUF"), "alpha-Q4_K_M.gguf"), talkingModel("alpha"));
  await writeModelFile(join(await snapshot("acme/beta-GGUF"), "beta-Q8_0.gguf"), talkingModel("beta"));
  await writeFile(join(await snapshot("local/starter-GGUF"), starterFileName), starterModel());
  const { url } = await startLlamaServer(t, [], { HF_HUB_CACHE: cache, HOME: cache });

  const listing = (await (await fetch(`${url}/models`)).json()) as {
    data: { id: string; context_length: number }[];
  };
  assert.deepEqual(
    listing.data.map(({ id, context_length }) => [id, context_length]),
    [
      ["acme/alpha-GGUF:Q4_K_M", 8192],
      ["acme/beta-GGUF:Q8_0", 8192],
      [starterId, 2048],
    ],
  );
  const expected = [
    ["acme/alpha-GGUF:Q4_K_M", answersOf("alpha").hello],
    ["acme/beta-GGUF:Q8_0", answersOf("beta").hello],
    [starterId, starterSentence],
  ] as const;
  for (const [model, content] of expected) {
    for (const stream of [false, true]) {
      const spoken = await chat(url, { model, ...ask("Hello"), stream });
      assert.equal(spoken.content, content);
      assert.equal(spoken.finishReason, "stop");
    }
  }
  const call = await chat(url, {
    model: "acme/beta-GGUF:Q8_0",
    ...ask("weather?"),
    tools: [weatherTool],
    stream: true,
  });
  assert.deepEqual([call.toolName, JSON.parse(call.toolArguments)], ["get_weather", weatherArguments]);
  // Editors offer tools with every message: the starter has to keep to its sentence.
  const offered = await chat(url, { model: starterId, ...ask("weather?"), tools: [weatherTool] });
  assert.deepEqual([offered.content, offered.toolName], [starterSentence, ""]);
});
