// The requests of VS Code's Copilot with an Ollama endpoint: it lists and describes models by Ollama's API, chats by
// OpenAI's below the same address, and sends no key anywhere.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { bearer, type Contract, call, contractTest, frames, type Json } from "../support/contract.ts";
import { weatherArguments, weatherTool } from "../support/models.ts";

const agent = { "user-agent": "GitHubCopilotChat/0.36.1" };
const ctxSize = 4096;
const json = { ...agent, "content-type": "application/json" };

/** The oldest version that it talks to, compared part by part. */
const oldest = [0, 6, 4] as const;

interface Delta {
  readonly role?: string;
  readonly content?: string | null;
  readonly tool_calls?: readonly {
    readonly index: number;
    readonly id?: string;
    readonly type?: string;
    readonly function: { readonly name?: string; readonly arguments?: string };
  }[];
}

interface Choice {
  readonly index: number;
  readonly delta: Delta;
  readonly finish_reason: string | null;
}

function choices(chunks: readonly Json[]): Choice[] {
  return chunks.flatMap((chunk) => chunk["choices"] as Choice[]);
}

contractTest("interface 4, Chat and model list: Copilot", chatAsCopilot, { ctxSize });

async function chatAsCopilot(t: TestContext, contract: Contract): Promise<void> {
  const { says, talker } = contract;
  const chat = {
    model: talker,
    messages: [
      { role: "system", content: "You are an AI programming assistant." },
      { role: "user", content: [{ type: "text", text: "long" }] },
    ],
    temperature: 0.1,
    top_p: 1,
    max_tokens: 4096,
    n: 1,
    stream: true,
    stream_options: { include_usage: true },
  };

  for (const { label, base } of contract.keylessAddresses(["", "/alpha"])) {
    await t.test(label, async (t) => {
      await t.test("a version that it takes", async () => {
        const { body } = await call(`${base}/api/version`, null, agent);
        const parts = String(body["version"]).split(".");
        assert.ok(parts.length >= 3 && parts.every((part) => /^\d+$/.test(part)), String(body["version"]));
        const first = parts.findIndex((part, index) => Number(part) !== (oldest[index] ?? 0));
        assert.ok(first === -1 || Number(parts[first]) > (oldest[first] ?? 0), String(body["version"]));
      });
      await t.test("each listed model can be described", async () => {
        const { body } = await call(`${base}/api/tags`, null, agent);
        const names = (body["models"] as { model: string }[]).map(({ model }) => model);
        const { body: list } = await call(`${contract.url}/v1/models`, null, bearer(contract));
        const inForce = new Map((list["data"] as Json[]).map(({ id, context_length }) => [id, context_length]));
        assert.equal(inForce.get(talker), ctxSize);
        assert.ok(names.includes(talker), names.join());
        for (const model of names) {
          const shown = await call(`${base}/api/show`, { model }, json);
          assert.equal(shown.status, 200, model);
          const info = shown.body["model_info"] as Json;
          const length = info[`${String(info["general.architecture"])}.context_length`];
          // Its prompts are as long as this allows, and it sets no size: more than what is in force would be refused.
          assert.equal(length, inForce.get(model), model);
          const name = info["general.basename"];
          assert.ok(typeof name === "string" && name !== "", `${model} has no name to show`);
          assert.equal(typeof shown.body["template"], "string");
          assert.equal(typeof (shown.body["details"] as Json)["family"], "string");
          assert.ok(Array.isArray(shown.body["capabilities"]));
        }
        const { body: shown } = await call(`${base}/api/show`, { model: talker }, json);
        const capabilities = shown["capabilities"] as string[];
        // A model without tools is not offered for agent mode.
        assert.deepEqual([capabilities.includes("tools"), capabilities.includes("vision")], [true, false]);
      });
      await t.test("interface 9, Versioning: the chat's path has v1, the description's has none", async () => {
        for (const [path, status] of [
          ["/v1/models", 200],
          ["/models", base.endsWith("/alpha") ? 404 : 200],
          ["/api/tags", 200],
          ["/api/v1/tags", 404],
        ] as const)
          assert.equal((await call(base + path, null, agent)).status, status, path);
      });
      await t.test("a chat", async () => {
        const chunks = await frames(`${base}/v1/chat/completions`, chat, json);
        const text = choices(chunks).map(({ delta }) => delta.content ?? "");
        assert.equal(text.join(""), says.long);
        assert.equal(choices(chunks)[0]?.delta.role, "assistant");
        assert.equal(choices(chunks).at(-1)?.finish_reason, "stop");
        const usage = chunks.at(-1)?.["usage"] as Json;
        assert.ok(Number(usage["completion_tokens"]) > 0 && Number(usage["prompt_tokens"]) > 0);
        assert.equal(new Set(chunks.map((chunk) => chunk["id"])).size, 1);
      });
      await t.test("a tool call, and the answer after it", async () => {
        const messages = [{ role: "user", content: "weather?" }];
        const body = { ...chat, messages, tools: [weatherTool], tool_choice: "auto" };
        const made = choices(await frames(`${base}/v1/chat/completions`, body, json));
        const pieces = made.flatMap(({ delta }) => delta.tool_calls ?? []);
        const [first] = pieces;
        assert.deepEqual([first?.index, first?.type, first?.function.name], [0, "function", "get_weather"]);
        assert.ok(first?.id);
        const written = pieces.map((piece) => piece.function.arguments ?? "").join("");
        assert.deepEqual(JSON.parse(written), weatherArguments);
        assert.equal(made.at(-1)?.finish_reason, "tool_calls");
        const toolCall = { id: first.id, type: "function", function: { name: "get_weather", arguments: written } };
        const history = [
          ...messages,
          { role: "assistant", content: "", tool_calls: [toolCall] },
          { role: "tool", tool_call_id: first.id, content: "sunny" },
        ];
        const after = choices(await frames(`${base}/v1/chat/completions`, { ...body, messages: history }, json));
        assert.equal(after.map(({ delta }) => delta.content ?? "").join(""), says.afterTool);
      });
    });
  }
  if (contract.key !== null) {
    await t.test("without the key in the path it is told what is missing", async () => {
      const listed = await call(`${contract.url}/api/tags`, null, agent);
      assert.equal(listed.status, 401);
      assert.match(String(listed.body["error"]), /key/);
      const asked = await call(`${contract.url}/v1/chat/completions`, chat, json);
      assert.equal(asked.status, 401);
      assert.match(String((asked.body["error"] as Json)["message"]), /\/k\/KEY/);
    });
  }
}
