// The requests of Continue with its Ollama provider. It makes its addresses with `new URL("api/...", base)`, so a base with
// a path needs a slash at its end.
import assert from "node:assert/strict";
import { bearer, call, contractTest, finished, type Json, records } from "../support/contract.ts";
import { weatherArguments, weatherTool } from "../support/models.ts";

/** A line of `parameters` that it can read; at any other line it gives up on the whole answer. */
const parameterLine = /^(\S+)\s+((?:".*")|\S+)$/;

contractTest("interface 4, Native routes: Continue", async (t, contract) => {
  const { says, talker } = contract;
  for (const { label, base, key } of contract.addresses(["/", "/alpha/"])) {
    await t.test(label, async (t) => {
      const at = (route: string): URL => new URL(`api/${route}`, base);
      const headers = { "content-type": "application/json", ...bearer({ key }) };
      const show = async (name: string): Promise<Json> => (await call(at("show"), { name }, headers)).body;
      const parameters = new Map<string, string>();

      await t.test("show by name: the context size in force among the parameters", async () => {
        const text = (await show(talker))["parameters"];
        assert.ok(typeof text === "string" && text !== "");
        for (const line of text.split("\n")) {
          const [, name = "", value = ""] = parameterLine.exec(line) ?? [];
          assert.ok(name !== "", `${JSON.stringify(line)} cannot be read`);
          if (name === "stop") assert.equal(typeof JSON.parse(value), "string");
          parameters.set(name, value);
        }
        const models = (await call(`${contract.url}/beta/v1/models`, null, bearer(contract))).body["data"] as Json[];
        const inForce = models.find(({ id }) => id === talker)?.["context_length"];
        assert.equal(Number(parameters.get("num_ctx")), inForce);
      });
      await t.test("a model that fills in the middle is told by its template", async () => {
        const { template, capabilities } = await show(talker);
        assert.equal(typeof template, "string");
        assert.equal((template as string).includes(".Suffix"), (capabilities as string[]).includes("insert"));
      });
      await t.test("a chat with the context size that it was shown restarts nothing", async () => {
        const before = finished(contract).length;
        const made = await records(
          at("chat"),
          {
            model: talker,
            messages: [
              { role: "system", content: "You are in chat mode." },
              { role: "user", content: "long" },
            ],
            options: {
              temperature: 0.5,
              num_predict: 2048,
              stop: ["<|im_end|>"],
              num_ctx: Number(parameters.get("num_ctx")),
            },
            keep_alive: 1800,
            stream: true,
          },
          headers,
        );
        const messages = made.map((record) => record["message"] as Json);
        assert.equal(messages.map(({ content }) => String(content)).join(""), says.long);
        assert.ok(messages.every(({ role }) => role === "assistant"));
        assert.equal(finished(contract).length, before);
        const ps = (await call(at("ps"), null, headers)).body["models"] as { name: string; expires_at: string }[];
        const until = new Date(ps.find(({ name }) => name === talker)?.expires_at ?? "").getTime();
        assert.ok(until > Date.now() + 1_700_000 && until <= Date.now() + 1_801_000, new Date(until).toISOString());
      });
      await t.test("with tools it asks for one JSON object", async () => {
        const question = { role: "user", content: "weather?" };
        const body = { model: talker, messages: [question], options: {}, keep_alive: 1800, stream: false };
        const answer = await call(at("chat"), { ...body, tools: [weatherTool] }, headers);
        const message = answer.body["message"] as Json & { tool_calls: { function: Json }[] };
        assert.deepEqual([message["role"], message.tool_calls.length], ["assistant", 1]);
        assert.deepEqual(
          [message.tool_calls[0]?.function["name"], message.tool_calls[0]?.function["arguments"]],
          ["get_weather", weatherArguments],
        );
        // It sends the tools with a user message only, not with the result.
        const messages = [question, message, { role: "tool", content: "sunny" }];
        const after = await call(at("chat"), { ...body, messages }, headers);
        assert.equal((after.body["message"] as Json)["content"], says.afterTool);
      });
      await t.test("a completion: every record has a response", async () => {
        const made = await records(
          at("generate"),
          { model: talker, prompt: "hi", options: {}, keep_alive: 1800 },
          headers,
        );
        assert.equal(made.map(({ response }) => response).join(""), says.hello);
        assert.ok(made.every(({ response }) => typeof response === "string"));
        const raw = {
          model: talker,
          prompt: "hi",
          raw: true,
          options: { num_predict: 8 },
          keep_alive: 1800,
          stream: true,
        };
        assert.equal((await records(at("generate"), raw, headers)).at(-1)?.["done"], true);
      });
      await t.test("a suffix for a model that cannot use it is refused", async () => {
        const body = {
          model: talker,
          prompt: "function add(",
          suffix: "}",
          options: {},
          keep_alive: 1800,
          stream: true,
        };
        const { status, body: answer } = await call(at("generate"), body, headers);
        assert.equal(status, 400);
        assert.match(String(answer["error"]), /does not support insert/);
      });
      await t.test("names and embeddings", async () => {
        const { body } = await call(at("tags"), null, headers);
        assert.ok((body["models"] as { name: string }[]).some(({ name }) => name === talker));
        const embedded = await call(at("embed"), { model: contract.embedder, input: ["a cat", "a dog"] }, headers);
        const vectors = embedded.body["embeddings"] as number[][];
        assert.equal(vectors.length, 2);
        assert.ok((vectors[0]?.length ?? 0) > 0);
      });
    });
  }
});
