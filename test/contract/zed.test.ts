// The requests of Zed. It reads every answer into structs: a field that is missing, null or of another type fails the whole.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { bearer, type Contract, call, contractTest, finished, type Json, records } from "../support/contract.ts";
import { weatherArguments, weatherTool } from "../support/models.ts";

const ctxSize = 4096;

/** Its request, with the nulls that it writes for what is not set. */
function chatOf(model: string, messages: readonly object[], tools: readonly object[] = []): object {
  return {
    model,
    messages,
    stream: true,
    keep_alive: -1,
    options: { num_ctx: ctxSize, num_predict: null, stop: [], temperature: 1, top_p: null },
    tools,
    think: null,
  };
}

function checkFields(value: Json, fields: Readonly<Record<string, "string" | "number" | "boolean">>): void {
  for (const [name, type] of Object.entries(fields))
    assert.equal(typeof value[name], type, `${name}: ${JSON.stringify(value)}`);
}

/** What its struct of a record needs. */
function checkRecord(record: Json): Json {
  checkFields(record, { model: "string", created_at: "string", done: "boolean" });
  const message = record["message"] as Json;
  assert.equal(message["role"], "assistant");
  checkFields(message, { content: "string" });
  for (const name of ["prompt_eval_count", "eval_count"])
    assert.ok(record[name] === undefined || Number.isInteger(record[name]));
  return message;
}

contractTest("interface 4, Native routes: Zed", talkAsZed, { ctxSize });

async function talkAsZed(t: TestContext, contract: Contract): Promise<void> {
  const { says, talker } = contract;
  // Some of its versions send the key with a chat and not with the list: there it belongs into the address.
  for (const { label, base, key } of contract.addresses(["", "/alpha"])) {
    await t.test(label, async (t) => {
      const headers = { "content-type": "application/json", ...bearer({ key }) };

      await t.test("the list", async () => {
        const { status, body } = await call(`${base}/api/tags`, null, {
          accept: "application/json",
          ...bearer({ key }),
        });
        assert.equal(status, 200);
        const models = body["models"] as (Json & { details: Json })[];
        assert.equal(models.length, 3);
        for (const model of models) {
          checkFields(model, { name: "string", modified_at: "string", size: "number", digest: "string" });
          checkFields(model.details, {
            format: "string",
            family: "string",
            parameter_size: "string",
            quantization_level: "string",
          });
          const { families } = model.details;
          assert.ok(families === undefined || families === null || Array.isArray(families));
        }
      });
      await t.test("what a model can do", async () => {
        const { body } = await call(`${base}/api/show`, { model: talker }, headers);
        const info = body["model_info"] as Json;
        // It asks for this much with every chat: were it what the model was trained for, each user of Zed would undo the
        // size that was set.
        assert.equal(info[`${String(info["general.architecture"])}.context_length`], ctxSize);
        const capabilities = body["capabilities"] as string[];
        assert.deepEqual(
          ["tools", "thinking", "vision"].map((name) => capabilities.includes(name)),
          [true, true, false],
        );
      });
      await t.test("a chat that keeps the model for ever", async () => {
        const before = finished(contract).length;
        const messages = [
          { role: "system", content: "You are a coding assistant." },
          { role: "user", content: "long" },
        ];
        const made = await records(`${base}/api/chat`, chatOf(talker, messages), headers);
        assert.equal(made.map((record) => checkRecord(record)["content"]).join(""), says.long);
        assert.equal(made.at(-1)?.["done"], true);
        assert.equal(finished(contract).length, before);
        const ps = (await call(`${base}/api/ps`, null, headers)).body["models"] as {
          name: string;
          expires_at: string;
        }[];
        const until = new Date(ps.find(({ name }) => name === talker)?.expires_at ?? "").getTime();
        assert.ok(until > Date.now() + 365 * 86_400_000, new Date(until).toISOString());
      });
      await t.test("a tool call with an id, and the answer after it", async () => {
        const question = { role: "user", content: "weather?" };
        const made = await records(`${base}/api/chat`, chatOf(talker, [question], [weatherTool]), headers);
        const calls = made.flatMap(
          (record) => (checkRecord(record)["tool_calls"] ?? []) as (Json & { function: Json })[],
        );
        assert.equal(calls.length, 1);
        const [one] = calls;
        assert.ok(one && typeof one["id"] === "string" && one["id"] !== "");
        assert.deepEqual([one.function["name"], one.function["arguments"]], ["get_weather", weatherArguments]);
        const { name, arguments: args } = one.function;
        const history = [
          question,
          {
            role: "assistant",
            content: "",
            tool_calls: [{ id: one["id"], function: { name, arguments: args } }],
            thinking: null,
          },
          { role: "tool", tool_name: "get_weather", content: "sunny" },
        ];
        const after = await records(`${base}/api/chat`, chatOf(talker, history, [weatherTool]), headers);
        assert.equal(after.map((record) => checkRecord(record)["content"]).join(""), says.afterTool);
      });
      await t.test("thinking, on unless it is switched off", async () => {
        const asked = chatOf(talker, [{ role: "user", content: "think" }]);
        for (const [think, expected] of [
          [null, says.reasoning],
          [true, says.reasoning],
          [false, ""],
        ] as const) {
          const made = await records(`${base}/api/chat`, { ...asked, think }, headers);
          const thought = made.map((record) => (checkRecord(record)["thinking"] ?? "") as string).join("");
          assert.equal(thought, expected, String(think));
        }
      });
      await t.test("a failure is a status and a text", async () => {
        const { status, body } = await call(`${base}/api/chat`, chatOf("nothing", []), headers);
        assert.deepEqual([status, typeof body["error"]], [404, "string"]);
      });
    });
  }
}
