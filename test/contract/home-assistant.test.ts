// The requests of Home Assistant's Ollama integration, as its client library for Python writes them.
import assert from "node:assert/strict";
import {
  bearer,
  call,
  contractTest,
  type Json,
  jsonAnswer,
  jsonSchema,
  pullable,
  records,
} from "../support/contract.ts";
import { answersOf, weatherArguments, weatherTool } from "../support/models.ts";

contractTest(
  "interface 4, Native routes: Home Assistant",
  async (t, contract) => {
    const { says, talker } = contract;
    for (const { label, base, key } of contract.addresses(["", "/alpha"])) {
      await t.test(label, async (t) => {
        const headers = {
          accept: "application/json",
          "content-type": "application/json",
          "user-agent": "ollama-python/0.5.1 (x86_64 linux) Python/3.13.2",
          ...bearer({ key }),
        };
        const chatOf = (messages: readonly object[], rest: object = {}): object => ({
          model: talker,
          messages,
          stream: true,
          options: { num_ctx: 8192 },
          keep_alive: -1,
          think: false,
          ...rest,
        });
        const prompt = { role: "system", content: "You are a voice assistant for Home Assistant." };
        const textOf = (made: readonly Json[]): string =>
          made.map((record) => String((record["message"] as Json)["content"])).join("");

        await t.test("set up: the list", async () => {
          const { status, body } = await call(`${base}/api/tags`, null, headers);
          assert.equal(status, 200);
          assert.ok((body["models"] as { model: string }[]).some(({ model }) => model === talker));
        });
        await t.test("interface 4, Pull: a model that is not here yet, in one answer", async () => {
          const pulled = await call(`${base}/api/pull`, { model: pullable, stream: false }, headers);
          assert.deepEqual([pulled.status, pulled.body], [200, { status: "success" }]);
          const answer = await call(
            `${base}/api/chat`,
            { ...chatOf([prompt, { role: "user", content: "hi" }]), model: pullable, stream: false },
            headers,
          );
          assert.equal((answer.body["message"] as Json)["content"], answersOf("pulled").hello);
        });
        await t.test("a pull that cannot be is an error", async () => {
          const { status, body } = await call(
            `${base}/api/pull`,
            { model: "acme/missing:latest", stream: false },
            headers,
          );
          assert.ok(status >= 400, String(status));
          assert.equal(typeof body["error"], "string");
        });
        await t.test("a question with tools; results carry neither name nor id", async () => {
          const question = [prompt, { role: "user", content: "How is the weather?" }];
          const made = await records(`${base}/api/chat`, chatOf(question, { tools: [weatherTool] }), headers);
          const calls = made.flatMap(
            (record) => ((record["message"] as Json)["tool_calls"] ?? []) as { function: Json }[],
          );
          assert.deepEqual(
            calls.map((one) => [one.function["name"], one.function["arguments"]]),
            [["get_weather", weatherArguments]],
          );
          const history = [
            ...question,
            {
              role: "assistant",
              content: "",
              tool_calls: [{ function: { name: "get_weather", arguments: weatherArguments } }],
            },
            { role: "tool", content: '{"data": "sunny", "error": null}' },
          ];
          const after = await records(`${base}/api/chat`, chatOf(history, { tools: [weatherTool] }), headers);
          assert.equal(textOf(after), says.afterTool);
        });
        await t.test("a task with a structure", async () => {
          const question = [prompt, { role: "user", content: "as json, please" }];
          const made = await records(`${base}/api/chat`, chatOf(question, { format: jsonSchema }), headers);
          assert.deepEqual(JSON.parse(textOf(made)), jsonAnswer);
        });
        await t.test("its keep_alive is a number for ever and a text for anything else", async () => {
          const until = async (keepAlive: number | string): Promise<number> => {
            await records(
              `${base}/api/chat`,
              chatOf([prompt, { role: "user", content: "hi" }], { keep_alive: keepAlive }),
              headers,
            );
            const { body } = await call(`${base}/api/ps`, null, headers);
            const running = body["models"] as { name: string; expires_at: string }[];
            return new Date(running.find(({ name }) => name === talker)?.expires_at ?? "").getTime() - Date.now();
          };
          assert.ok((await until(-1)) > 365 * 86_400_000);
          const short = await until("300s");
          assert.ok(short > 60_000 && short <= 301_000, `${short} ms`);
        });
      });
    }
    if (contract.key !== null) {
      await t.test("a wrong key is told from a wrong address", async () => {
        for (const headers of [{}, { authorization: "Bearer wrong" }])
          assert.equal((await call(`${contract.url}/api/tags`, null, headers)).status, 401);
      });
    }
  },
  { hub: true },
);
