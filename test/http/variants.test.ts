// Variants of a model: names of their own in every list, settings of their own in every family, and one process for all of them.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { adapterBytes } from "../support/adapter.ts";
import { cleanUp } from "../support/clean-up.ts";
import { commandHere } from "../support/command.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { eventsOf, loadedIds, loadsBegun, startTestGateway } from "../support/gateway.ts";
import { answersOf } from "../support/models.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

const alpha = "acme/alpha:Q8_0";
const lora = [{ id: 0, scale: 0.5 }];
const terse = { name: "terse", set: { temperature: 0.25, max_tokens: 4, lora, chat_template_kwargs: { tone: "dry" } } };
const strict = { name: "strict", set: { max_tokens: 6, top_k: 7, stop: ["running"] }, force: ["max_tokens", "top_k"] };

interface Settings {
  readonly temperature: number;
  readonly max_tokens: number;
  readonly top_k: number;
  readonly lora: unknown;
}

test("variants of a model", async (t) => {
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/alpha");
  await writeFile(join(folders.stateDir, "a.gguf"), adapterBytes("a"));
  const template = "{% for m in messages %}{{ m.content }}{% endfor %}|{{ tone }}";
  await writeFile(join(folders.stateDir, "a.jinja"), template);
  const model = { id: alpha, variants: [terse, strict], lora: [{ source: "./a.gguf" }], chatTemplate: "./a.jinja" };
  const gateway = await startTestGateway(t, { folders, yaml: JSON.stringify({ version: 1, models: [model] }) });
  await gateway.converged();
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const answer = await gateway.json(path, postWith(body));
    assert.equal(answer.status, 200, `${path} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  /** What the engine has computed with. */
  const settingsOf = async (name: string, rest: object): Promise<Settings> => {
    const { body } = await gateway.json("/v1/chat/completions", chatWith(name, "long", { verbose: true, ...rest }));
    const { generation_settings } = body["__verbose"] as { generation_settings: Settings };
    const { temperature, max_tokens, top_k, lora } = generation_settings;
    return { temperature, max_tokens, top_k, lora };
  };
  const processes = async (): Promise<unknown[]> => {
    const { models } = (await gateway.json("/status")).body as { models: { runtime: { pid: number } }[] };
    return models.map(({ runtime }) => runtime.pid);
  };

  await t.test("they stand in every list, with whose they are", async () => {
    for (const path of ["/v1/models", "/models"]) {
      const { data } = (await gateway.json(path)).body as {
        data: { id: string; variant_of?: string; aliases: string[] }[];
      };
      assert.deepEqual(
        data.map(({ id, variant_of }) => [id, variant_of]),
        [
          [alpha, undefined],
          ["terse", alpha],
          ["strict", alpha],
        ],
      );
    }
    // Estimated a while after the start, as nothing waits for it.
    await gateway.until("its need is known", ({ models }) =>
      models.some(({ conditions }) => conditions.some(({ type, status }) => type === "Fits" && status === "True")),
    );
    const { stdout } = await commandHere(folders, ["show", "terse"]);
    assert.match(stdout, /^Variant of +acme\/alpha:Q8_0$[^]*^Needs +\d+ MiB of memory/m);
    const { models } = (await gateway.json("/api/tags")).body as {
      models: { name: string; details: { parent_model: string } }[];
    };
    assert.deepEqual(
      models.map(({ name, details }) => [name, details.parent_model]),
      [
        [alpha, ""],
        ["terse", alpha],
        ["strict", alpha],
      ],
    );
    const { id, variant_of } = (await gateway.json("/v1/models/TERSE")).body;
    assert.deepEqual([id, variant_of], ["terse", alpha]);
    const { parameters } = await post("/api/show", { model: "strict:latest" });
    assert.match(String(parameters), /^max_tokens +6\ntop_k +7\nstop +"running"$/m);
    const status = (await gateway.json("/status")).body as { models: { id: string; variants: string[] }[] };
    assert.deepEqual(
      status.models.map(({ id, variants }) => [id, variants]),
      [[alpha, ["terse", "strict"]]],
    );
  });

  const base = await settingsOf(alpha, {});
  const pids = await processes();
  await t.test("a chat has what the client sent, what is forced, and else what the variant sets", async () => {
    assert.deepEqual(await settingsOf("terse", {}), { ...base, temperature: 0.25, max_tokens: 4, lora });
    assert.deepEqual(await settingsOf("terse", { temperature: 1, max_completion_tokens: 9, lora: [] }), {
      ...base,
      temperature: 1,
      max_tokens: 9,
      lora: [],
    });
    assert.deepEqual(await settingsOf("strict", { n_predict: 500, top_k: 1 }), { ...base, max_tokens: 6, top_k: 7 });
    assert.deepEqual(await settingsOf(alpha, {}), base);
    const { prompt } = await post("/apply-template", { model: "terse", messages: [{ role: "user", content: "hi" }] });
    assert.equal(prompt, "hi|dry");
  });
  await t.test("in every family", async () => {
    const messages = [{ role: "user", content: "long" }];
    const { usage } = (await post("/v1/responses", { model: "terse", input: "long" })) as { usage: object };
    assert.equal((usage as { output_tokens: number }).output_tokens, 4);
    const message = await post("/v1/messages", { model: "strict", messages, max_tokens: 50 });
    assert.deepEqual(message["content"], [{ type: "text", text: "Hello from acme/alpha, " }]);
    const chat = { model: "terse", messages, stream: false };
    assert.deepEqual(
      [(await post("/api/chat", chat))["eval_count"], (await post("/api/chat", chat))["model"]],
      [4, "terse"],
    );
    assert.equal((await post("/api/chat", { ...chat, options: { num_predict: 2 } }))["eval_count"], 2);
    const forced = { model: "strict", prompt: "long", stream: false, options: { num_predict: 2, stop: ["w9"] } };
    assert.equal((await post("/api/generate", forced))["eval_count"], 6);
    assert.equal((await post("/api/generate", { ...forced, raw: true }))["eval_count"], 6);
    assert.equal((await post("/completion", { model: "terse", prompt: "long" }))["tokens_predicted"], 4);
    const { tokens } = await post("/tokenize", { model: "terse", content: "hi" });
    assert.ok(Array.isArray(tokens) && tokens.length > 0);
  });
  await t.test("under load at once they share one process, which is loaded once", async () => {
    const names = ["terse", "strict", alpha];
    const limits = { stop: null, max_tokens: null };
    const tell = async (name: string): Promise<unknown> => {
      const { choices } = await post("/v1/chat/completions", {
        model: name,
        messages: [{ role: "user", content: "hi" }],
        ...limits,
      });
      return (choices as { message: { content: string } }[])[0]?.message.content;
    };
    const alone = [await tell("terse"), await tell("strict"), await tell(alpha)];
    assert.deepEqual(alone.slice(1), ["Hello from acme/alpha, ", answersOf("acme/alpha").hello]);
    assert.equal(new Set(alone).size, 3);
    const asked = Array.from({ length: 60 }, (_, index) => index % 3);
    const answers = await Promise.all(asked.map((index) => tell(names[index] ?? "")));
    assert.deepEqual(
      answers,
      asked.map((index) => alone[index]),
    );
    assert.deepEqual([await processes(), loadsBegun(gateway)], [pids, [alpha]]);
  });
  await t.test("an edit of a variant is in force with the next request, and reloads nothing", async () => {
    const variants = [{ ...terse, set: { max_tokens: 2 } }];
    const edited = await gateway.json("/api/desired?wait=true", patchWith({ models: { [alpha]: { variants } } }));
    assert.equal(edited.status, 200, JSON.stringify(edited.body));
    assert.deepEqual(await settingsOf("terse", {}), { ...base, max_tokens: 2 });
    assert.equal((await gateway.json("/v1/chat/completions", chatWith("strict"))).status, 404);
    assert.deepEqual([await processes(), loadsBegun(gateway)], [pids, [alpha]]);
    assert.deepEqual(
      eventsOf(gateway.gateway, "drain").map(({ data }) => data),
      [],
    );
  });
  await t.test("names are unique, and a variant is neither copied nor deleted", async () => {
    const taken = await gateway.json("/api/copy", postWith({ source: alpha, destination: "terse" }));
    assert.deepEqual([taken.status, /terse is already a name/.test(JSON.stringify(taken.body))], [400, true]);
    for (const [path, init] of [
      ["/api/copy", postWith({ source: "terse", destination: "other" })],
      ["/api/delete", { ...postWith({ model: "terse" }), method: "DELETE" }],
    ] as const) {
      const { status, body } = await gateway.json(path, init);
      assert.ok(
        status >= 400 && /terse'? is a variant of acme\/alpha:Q8_0/.test(JSON.stringify(body)),
        JSON.stringify(body),
      );
    }
  });
  await t.test(
    "scheduling: maxQueue and keepAlive of the model are in force with the edit, without a reload",
    async () => {
      await post("/models/unload", { model: "terse" });
      const rules = { maxQueue: 2, keepAlive: "0s", priority: -3 };
      await gateway.json("/api/desired?wait=true", patchWith({ models: { [alpha]: rules } }));
      const answers = await Promise.all(
        ["terse", alpha, "terse"].map((name) => gateway.json("/v1/chat/completions", chatWith(name))),
      );
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 200, 503]);
      assert.match(JSON.stringify(answers.find(({ status }) => status === 503)?.body), /its maxQueue/);
      const status = await gateway.until("unloaded", ({ models }) =>
        (models[0]?.conditions ?? []).some(({ type, status }) => type === "Loaded" && status === "False"),
      );
      const { keepAlive, maxQueue, priority } = status.models[0] ?? {};
      assert.deepEqual({ keepAlive, maxQueue, priority }, rules);
      await post("/v1/chat/completions", { model: alpha, messages: [{ role: "user", content: "hi" }], keep_alive: -1 });
      assert.deepEqual(await loadedIds(gateway), [alpha, "terse"]);
    },
  );
});

test("the body of a plain name reaches the engine byte for byte; that of a variant differs where the variant writes", async (t) => {
  const bodies: string[] = [];
  const engine = createServer((request, response) => {
    request.setEncoding("latin1").on("data", (text: string) => bodies.push(text));
    request.on("end", () => response.setHeader("content-type", "application/json").end("{}"));
  }).listen(0, "127.0.0.1");
  await once(engine, "listening");
  cleanUp(t, () => {
    engine.closeAllConnections();
    engine.close();
  });
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/alpha");
  const script = join(folders.root, "llama-server");
  const router = fileURLToPath(new URL("../bench/wire/stand-in-router.js", import.meta.url));
  const command = `'${process.execPath}' '${router}' '${alpha}' ${(engine.address() as AddressInfo).port} "$@"`;
  await writeFile(script, `#!/bin/sh\nexec ${command}\n`, { mode: 0o755 });
  const gateway = await startTestGateway(t, {
    folders,
    yaml: JSON.stringify({ version: 1, models: [{ id: alpha, variants: [strict] }] }),
    flags: ["--llama-server", script],
  });
  await gateway.converged();
  await gateway.json("/v1/models/load", postWith({ model: alpha }));
  // The first token is asked for once, by the gateway.
  await until("its process is believed", () => bodies.some((body) => body.includes("n_predict")));
  for (const padding of ["", "x".repeat(40_000)]) {
    const body = (model: string): string =>
      ` {\n"messages":[{"content":"\\u00e9 ${padding}"}] , "top_k":1,\t"max_tokens":1e2, "model" : "${model}","temperature":0.10 }\n`;
    bodies.length = 0;
    await gateway.json("/v1/chat/completions", { ...postWith({}), body: body(alpha) });
    assert.equal(bodies.join(""), body(alpha));
    bodies.length = 0;
    await gateway.json("/v1/chat/completions", { ...postWith({}), body: body("strict") });
    const written = `"${alpha}","stop":["running"],"stop_sequences":["running"]`;
    const expected = body("strict").replace('"strict"', written).replace('"top_k":1', '"top_k":7').replace("1e2", "6");
    assert.equal(bodies.join(""), expected);
  }
});
