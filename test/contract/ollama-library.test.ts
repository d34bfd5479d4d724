// The ollama client's methods about models against the native family, at the root and below its prefix.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ollama } from "ollama";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, embeddingModel, insertModel, modelBytes, talkingModel } from "../support/models.ts";

const hosts = ["", "/alpha"];
const messages = [{ role: "user", content: "hi" }];

test("interface 4, Native routes: tags, ps, show, version", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const filler = "acme/filler-GGUF:Q8_0";
  await cacheModel(folders, "acme/filler-GGUF", "filler-Q8_0.gguf", modelBytes(insertModel("filler")));
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${model}", ctxSize: 2048 }]\n`,
  });
  await gateway.converged();
  for (const host of hosts) {
    const client = new Ollama({ host: gateway.url + host });
    await t.test(host === "" ? "at the root" : `below ${host}`, async (t) => {
      await t.test("list", async () => {
        const { models } = await client.list();
        assert.deepEqual(
          models.map(({ name, model, details }) => [name, model, details.format, details.family]),
          [
            [model, model, "gguf", "llama"],
            [filler, filler, "gguf", "llama"],
          ],
        );
        const [entry] = models;
        assert.match(entry?.digest ?? "", /^[0-9a-f]{64}$/);
        assert.match(entry?.details.parameter_size ?? "", /^\d+(\.\d+)?K$/);
        assert.equal(entry?.details.quantization_level, "Q8_0");
        assert.ok((entry?.size ?? 0) > 100_000 && Number.isFinite(Date.parse(String(entry?.modified_at))));
      });
      await t.test("ps", async () => {
        await client.chat({ model, messages, keep_alive: "10m" });
        const { models } = await client.ps();
        const [entry] = models;
        assert.deepEqual([models.length, entry?.name, entry?.size_vram], [1, model, 0]);
        const left = Date.parse(String(entry?.expires_at)) - Date.now();
        assert.ok(left > 300_000 && left <= 600_000, String(left));
        assert.equal((entry as { context_length?: number } | undefined)?.context_length, 2048);
        await client.chat({ model, messages, keep_alive: -1 });
        const [kept] = (await client.ps()).models;
        assert.ok(Date.parse(String(kept?.expires_at)) - Date.now() > 100 * 365 * 86_400_000);
      });
      await t.test("show", async () => {
        const shown = await client.show({ model });
        assert.match(shown.parameters, /^num_ctx +2048$/m);
        assert.deepEqual(shown.capabilities, ["completion", "tools", "thinking"]);
        assert.ok(shown.template.includes("add_generation_prompt") && !shown.template.includes(".Suffix"));
        assert.ok(shown.modelfile.startsWith("#") && !shown.modelfile.includes(gateway.cacheDir));
        const info = shown.model_info as unknown as Record<string, unknown>;
        assert.deepEqual(
          ["general.architecture", "general.basename", "llama.context_length", "tokenizer.ggml.tokens"].map(
            (key) => info[key],
          ),
          ["llama", "alpha", 2048, null],
        );
        assert.ok(Number(info["general.parameter_count"]) > 10_000);
        assert.equal(info["tokenizer.chat_template"], undefined);
        const other = await client.show({ model: "filler-GGUF" });
        assert.deepEqual(other.capabilities, ["completion", "tools", "insert", "thinking"]);
        assert.ok(other.template.includes(".Suffix"));
        const otherInfo = other.model_info as unknown as Record<string, unknown>;
        assert.equal(otherInfo["general.basename"], "filler");
        await assert.rejects(client.show({ model: "nothing" }), {
          message: /^model 'nothing' not found/,
          status_code: 404,
        });
      });
      await t.test("version", async () => {
        const { version } = await client.version();
        assert.match(version, /^0\.\d+\.\d+$/);
        assert.ok(Number(version.split(".")[1]) >= 7);
      });
      await t.test("what there is none of says so", async () => {
        await assert.rejects(client.create({ model: "x", from: model }), {
          status_code: 501,
          message: /not offered here/,
        });
        await assert.rejects(client.push({ model }), { status_code: 501, message: /not offered here/ });
      });
    });
  }
});

test("interface 4, Native routes: pull, copy and delete", async (t) => {
  const hub = await startLoopbackHub(t);
  const folders = await makeFolders(t);
  await cacheTalker(folders, "acme/kept");
  const gateway = await startTestGateway(t, {
    folders,
    yaml: "version: 1\n",
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  for (const [at, host] of hosts.entries()) {
    const client = new Ollama({ host: gateway.url + host });
    const repo = `acme/pulled-${at}`;
    const bytes = modelBytes(talkingModel(repo));
    hub.addRepo(repo, { files: { "pulled-Q8_0.gguf": bytes } });
    await t.test(host === "" ? "at the root" : `below ${host}`, async (t) => {
      await t.test("pull, streamed: a bar per file, and success once it can be asked", async () => {
        const statuses: string[] = [];
        let last: { digest: string; total: number; completed: number } | null = null;
        for await (const record of await client.pull({ model: `${repo}:Q8_0`, stream: true })) {
          if (statuses.at(-1) !== record.status) statuses.push(record.status);
          if (record.digest) last = record;
        }
        assert.match(last?.digest ?? "", /^sha256:[0-9a-f]{64}$/);
        assert.deepEqual([last?.total, last?.completed], [bytes.length, bytes.length]);
        const bar = `pulling ${last?.digest.slice(7, 19)}`;
        assert.deepEqual(
          statuses.filter((status) => /^pulling|^verifying|^writing|^success/.test(status)),
          ["pulling manifest", bar, "verifying sha256 digest", "writing manifest", "success"],
        );
        const { message } = await client.chat({ model: repo, messages });
        assert.equal(message.content, answersOf(repo).hello);
      });
      await t.test("pull of what is here, not streamed", async () => {
        assert.deepEqual(await client.pull({ model: `${repo}:Q8_0` }), { status: "success" });
      });
      await t.test("pull of what is nowhere", async () => {
        for (const stream of [false, true]) {
          const pull = async (): Promise<void> => {
            const answer = await client.pull({ model: "acme/nowhere:Q8_0", stream: stream as true });
            for await (const _record of answer);
          };
          await assert.rejects(pull(), { status_code: 404, message: /acme\/nowhere/ });
        }
      });
      await t.test("copy gives another name, delete takes it away, and then the model", async () => {
        assert.deepEqual(await client.copy({ source: repo, destination: "short" }), { status: "success" });
        const taken = client.copy({ source: repo, destination: "acme/kept:Q8_0" });
        await assert.rejects(taken, { status_code: 400, message: /acme\/kept:Q8_0/ });
        const { message } = await client.chat({ model: "short:latest", messages });
        assert.equal(message.content, answersOf(repo).hello);
        assert.deepEqual(await client.delete({ model: "short" }), { status: "success" });
        await assert.rejects(client.chat({ model: "short", messages }), { status_code: 404 });
        assert.deepEqual(await client.delete({ model: `${repo}:Q8_0` }), { status: "success" });
        const { models } = await client.list();
        assert.ok(!models.some(({ name }) => name.startsWith(repo)));
        await assert.rejects(client.delete({ model: `${repo}:Q8_0` }), { status_code: 404 });
        await assert.rejects(client.copy({ source: "acme/nowhere", destination: "x" }), { status_code: 404 });
      });
    });
  }
});

test("interface 4, Native routes: embed and embeddings", async (t) => {
  const folders = await makeFolders(t);
  const model = "acme/embedder:Q8_0";
  await cacheModel(
    folders,
    "acme/embedder",
    "embedder-Q8_0.gguf",
    modelBytes(embeddingModel("embedder", { contextLength: 256 })),
  );
  const talker = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\n" });
  await gateway.converged();
  const norm = (vector: readonly number[] = []): number => Math.hypot(...vector);
  for (const host of hosts) {
    const client = new Ollama({ host: gateway.url + host });
    await t.test(host === "" ? "at the root" : `below ${host}`, async (t) => {
      await t.test("one text, several, none", async () => {
        const one = await client.embed({ model: "embedder", input: "a cat" });
        assert.deepEqual([one.model, one.embeddings.length, one.embeddings[0]?.length], ["embedder", 1, 64]);
        assert.ok(one.prompt_eval_count >= 5 && one.total_duration > 0 && one.load_duration <= one.total_duration);
        const two = await client.embed({ model, input: ["a dog", "a cat"] });
        assert.equal(two.embeddings.length, 2);
        assert.notDeepEqual(two.embeddings[0], two.embeddings[1]);
        for (const [at, value] of (two.embeddings[1] ?? []).entries())
          assert.ok(Math.abs(value - (one.embeddings[0]?.[at] ?? 9)) < 1e-3);
        assert.deepEqual((await client.embed({ model, input: [] })).embeddings, []);
      });
      await t.test("fewer dimensions, at length 1", async () => {
        const { embeddings } = await client.embed({ model, input: "a cat", dimensions: 8 });
        assert.equal(embeddings[0]?.length, 8);
        assert.ok(Math.abs(norm(embeddings[0]) - 1) < 1e-5);
      });
      await t.test("a text that is too long is cut, or refused", async () => {
        const input = ["short", "x".repeat(3000)];
        const { embeddings } = await client.embed({ model, input });
        assert.deepEqual(
          embeddings.map((vector) => vector.length),
          [64, 64],
        );
        const refused = client.embed({ model, input, truncate: false });
        await assert.rejects(refused, { status_code: 400, message: /tokens|too large/ });
      });
      await t.test("the older route", async () => {
        const { embedding } = await client.embeddings({ model, prompt: "a cat" });
        assert.equal(embedding.length, 64);
        assert.deepEqual((await client.embeddings({ model, prompt: "" })).embedding, []);
      });
      await t.test("models that are not for it", async () => {
        await assert.rejects(client.embed({ model: talker, input: "x" }), {
          status_code: 400,
          message: /not support embeddings/,
        });
        await assert.rejects(client.chat({ model, messages }), {
          status_code: 400,
          message: `"${model}" does not support chat`,
        });
        await assert.rejects(client.generate({ model, prompt: "hi" }), {
          status_code: 400,
          message: `"${model}" does not support generate`,
        });
        assert.deepEqual((await client.show({ model })).capabilities, ["embedding"]);
      });
    });
  }
});
