// The requests of Open WebUI, to its Ollama connection and to its OpenAI connection.
import assert from "node:assert/strict";
import { bearer, call, contractTest, frames, type Json, pullable, records } from "../support/contract.ts";
import { answersOf, weatherArguments, weatherTool } from "../support/models.ts";

interface Listed {
  readonly name: string;
  readonly model: string;
  readonly expires_at?: string;
}

/** What Python's `datetime.fromisoformat` reads, in a year that a `datetime` can have. */
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)$/;

contractTest(
  "interface 4, Native routes: Open WebUI",
  async (t, contract) => {
    const { says, talker } = contract;
    for (const { label, base, key } of contract.addresses(["", "/alpha"])) {
      const headers = { "content-type": "application/json", ...bearer({ key }) };
      const messages = [{ role: "user", content: "hi" }];
      const list = async (path: string): Promise<Listed[]> =>
        (await call(base + path, null, headers)).body["models"] as Listed[];

      await t.test(`Ollama connection, ${label}`, async (t) => {
        await t.test("the connection is verified by a version of numbers", async () => {
          const { status, body } = await call(`${base}/api/version`, null, bearer({ key }));
          assert.equal(status, 200);
          const parts = String(body["version"])
            .replace(/^v|-.*/g, "")
            .split(".");
          assert.ok(parts.every((part) => /^\d+$/.test(part)));
        });
        await t.test("the list, and what is loaded until when", async () => {
          const tags = await list("/api/tags");
          for (const entry of tags) assert.equal(entry.name, entry.model);
          assert.ok(tags.some(({ name }) => name === talker));
          for (const [keepAlive, least, most] of [
            ["5m", 200_000, 301_000],
            [-1, 365 * 86_400_000, Number.POSITIVE_INFINITY],
          ] as const) {
            const body = { model: talker, messages, stream: false, keep_alive: keepAlive, options: {} };
            await call(`${base}/api/chat`, body, headers);
            const running = await list("/api/ps");
            const until = running.find(({ name }) => name === talker)?.expires_at ?? "";
            assert.match(until, isoTime);
            const left = new Date(until).getTime() - Date.now();
            assert.ok(left > least && left <= most, `${left} ms`);
          }
        });
        await t.test("a chat as it sends it, for a name without a tag too", async () => {
          for (const model of [talker, "acme/talker:latest"]) {
            const body = { model, messages: [{ role: "user", content: "long" }], stream: true, options: {} };
            const made = await records(`${base}/api/chat`, body, headers);
            const text = made.map((record) => String((record["message"] as Json)["content"]));
            assert.equal(text.join(""), says.long);
            const last = made.at(-1) ?? {};
            assert.deepEqual([last["done"], last["done_reason"], last["model"]], [true, "stop", model]);
            for (const field of ["total_duration", "load_duration", "prompt_eval_count", "eval_count", "eval_duration"])
              assert.ok(Number.isInteger(last[field]), field);
          }
        });
        await t.test("tools and a schema", async () => {
          const made = await records(
            `${base}/api/chat`,
            { model: talker, messages, stream: true, options: {}, tools: [weatherTool] },
            headers,
          );
          const calls = made.flatMap(
            (record) => ((record["message"] as Json)["tool_calls"] ?? []) as { function: Json }[],
          );
          assert.deepEqual(
            calls.map((one) => [one.function["name"], one.function["arguments"]]),
            [["get_weather", weatherArguments]],
          );
        });
        await t.test("details of a model, under both names of the field", async () => {
          const { status, body } = await call(`${base}/api/show`, { name: talker, model: talker }, headers);
          assert.equal(status, 200);
          assert.ok((body["capabilities"] as string[]).includes("completion"));
        });
        await t.test("a completion, for titles and tags", async () => {
          const body = { model: talker, prompt: "hi", stream: false, options: {} };
          const { status, body: answer } = await call(`${base}/api/generate`, body, headers);
          assert.deepEqual([status, answer["response"], answer["done"]], [200, says.hello, true]);
        });
        await t.test("embeddings for documents, by the new route and the old one", async () => {
          const input = ["a cat", "another thing"];
          const { body } = await call(`${base}/api/embed`, { model: contract.embedder, input }, headers);
          const [one = [], other = []] = body["embeddings"] as number[][];
          assert.ok(one.length > 0 && one.length === other.length);
          const old = await call(`${base}/api/embeddings`, { model: contract.embedder, prompt: "a cat" }, headers);
          assert.equal((old.body["embedding"] as number[]).length, one.length);
        });
        await t.test(
          "interface 3, keep_alive 0: one JSON object, though nothing says that it should not be a stream",
          async () => {
            await call(`${base}/api/chat`, { model: talker, messages, stream: false }, headers);
            const unloading = { model: talker, keep_alive: 0, prompt: "" };
            const { status, headers: answered, body } = await call(`${base}/api/generate`, unloading, headers);
            assert.equal(status, 200);
            assert.match(answered.get("content-type") ?? "", /^application\/json/);
            assert.deepEqual([body["done"], body["done_reason"]], [true, "unload"]);
            const ps = await list("/api/ps");
            assert.ok(!ps.some(({ name }) => name === talker));
          },
        );
        await t.test("copy, and delete of the copy", async () => {
          const copied = await fetch(`${base}/api/copy`, {
            method: "POST",
            headers,
            body: JSON.stringify({ source: talker, destination: "my-talker" }),
          });
          assert.equal(copied.status, 200, await copied.text());
          const answer = await call(
            `${base}/api/chat`,
            { model: "my-talker:latest", messages, stream: false },
            headers,
          );
          assert.equal((answer.body["message"] as Json)["content"], says.hello);
          const remove = (): Promise<Response> =>
            fetch(`${base}/api/delete`, {
              method: "DELETE",
              headers,
              body: JSON.stringify({ model: "my-talker", name: "my-talker" }),
            });
          assert.equal((await remove()).status, 200);
          assert.equal((await remove()).status, 404);
          assert.ok((await list("/api/tags")).some(({ name }) => name === talker));
        });
        await t.test("interface 4, Pull: with progress, then delete", async () => {
          const made = await records(
            `${base}/api/pull`,
            { name: pullable, model: pullable, insecure: true, stream: true },
            headers,
          );
          assert.equal(made[0]?.["status"], "pulling manifest");
          assert.equal(made.at(-1)?.["status"], "success");
          const files = new Set(made.flatMap((record) => (record["digest"] === undefined ? [] : [record["digest"]])));
          assert.equal(files.size, 1);
          const pulled = (await list("/api/tags")).find(({ name }) => name === pullable);
          assert.ok(pulled);
          const answer = await call(`${base}/api/chat`, { model: pullable, messages, stream: false }, headers);
          assert.equal((answer.body["message"] as Json)["content"], answersOf("pulled").hello);
          const removed = await fetch(`${base}/api/delete`, {
            method: "DELETE",
            headers,
            body: JSON.stringify({ name: pullable, model: pullable }),
          });
          assert.equal(removed.status, 200, await removed.text());
          assert.ok(!(await list("/api/tags")).some(({ name }) => name === pullable));
        });
      });
    }

    for (const { label, base, key } of contract.addresses(["/v1", "/beta/v1"])) {
      const headers = { "content-type": "application/json", ...bearer({ key }) };
      await t.test(`interface 6, Events: a chat is an event stream, OpenAI connection at ${label}`, async () => {
        const body = { model: talker, messages: [{ role: "user", content: "hi" }], stream: true };
        const chunks = await frames(`${base}/chat/completions`, body, headers);
        const text = chunks.flatMap((chunk) => chunk["choices"] as { delta: { content?: string } }[]);
        assert.equal(text.map(({ delta }) => delta.content ?? "").join(""), says.hello);
        const { body: listed } = await call(`${base}/models`, null, headers);
        const entries = listed["data"] as { id: string; status: { value: string } }[];
        assert.equal(entries.find(({ id }) => id === talker)?.status.value, "loaded");
      });
    }
  },
  { hub: true },
);
