// What a gateway counts, and that a scrape changes nothing.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { loadedIds, startTestGateway, type TestGateway, untilLoaded } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { type Scrape, scrape as scrapeOf } from "../support/metrics.ts";
import { answersOf, embeddingModel, modelBytes, slowModel, talkingModel } from "../support/models.ts";
import { metricsIn, queries } from "../support/monitoring.ts";
import { chatWith, patchWith, postWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

/** Names that were served so far. */
const served = new Set<string>();

async function scrape(gateway: TestGateway): Promise<Scrape> {
  const found = await scrapeOf(gateway);
  for (const name of found.names) served.add(name);
  return found;
}

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

async function read(gateway: TestGateway, path: string, body: object): Promise<string> {
  const response = await fetch(gateway.url + path, postWith(body));
  assert.equal(response.status, 200, path);
  return response.text();
}

/** Scrapes until a counter that follows an event has come there. */
async function scrapedUntil(gateway: TestGateway, what: string, test: (found: Scrape) => boolean): Promise<Scrape> {
  let found = await scrape(gateway);
  await until(what, async () => test((found = await scrape(gateway))));
  return found;
}

test("requests are counted by family, route, model and status, with their tokens and times", async (t) => {
  const folders = await makeFolders(t);
  const alpha = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: `version: 1\nmodels: ["${alpha}"]\n` });
  await gateway.converged();
  const messages = [{ role: "user", content: "hi" }];
  const chat = { model: alpha, messages, max_tokens: 4 };

  await t.test("before the first request there is no family without a sample", async () => {
    const { text, value } = await scrape(gateway);
    const lines = text.split("\n");
    lines.forEach((line, at) => {
      const [, name = ""] = /^# TYPE (\w+) /.exec(line) ?? [];
      if (name !== "") assert.ok(lines[at + 1]?.startsWith(name), `${name} is empty`);
    });
    for (const name of ["ready", "healthy", "synced", "source_valid", "router_connected", "generation"])
      assert.equal(value(name), 1, name);
    assert.deepEqual([value("stalled"), value("drift_mended_total"), value("pull_bytes_total")], [0, 0, 0]);
    assert.deepEqual([value("model_ready", { model: alpha }), value("model_loaded", { model: alpha })], [1, 0]);
    assert.equal(value("condition", { type: "Synced" }), 1, "one status holds");
    assert.equal(value("actions_total", { kind: "router.start", outcome: "succeeded" }), 1);
    assert.ok(Math.abs((value("last_success_timestamp_seconds") ?? 0) - Date.now() / 1000) < 300);
  });

  await t.test("whole answers: the tokens of each family are those that it tells its client", async () => {
    let [prompt, completion] = [0, 0];
    for (const path of ["/beta/v1/chat/completions", "/v1/chat/completions"]) {
      const { usage } = JSON.parse(await read(gateway, path, chat)) as { readonly usage: Usage };
      prompt += usage.prompt_tokens;
      completion += usage.completion_tokens;
    }
    const message = JSON.parse(await read(gateway, "/beta/v1/messages", chat)) as {
      readonly usage: { input_tokens: number; output_tokens: number; cache_read_input_tokens: number };
    };
    prompt += message.usage.input_tokens + message.usage.cache_read_input_tokens;
    completion += message.usage.output_tokens;
    const record = JSON.parse(
      await read(gateway, "/alpha/api/chat", { model: alpha, messages, stream: false, options: { num_predict: 4 } }),
    ) as { readonly prompt_eval_count: number; readonly eval_count: number };
    prompt += record.prompt_eval_count;
    completion += record.eval_count;
    // It computes nothing.
    await read(gateway, "/beta/v1/messages/count_tokens", { model: alpha, messages });
    assert.ok(completion > 0 && prompt > 0);
    const { value } = await scrape(gateway);
    assert.equal(value("prompt_tokens_total", { model: alpha }), prompt);
    assert.equal(value("completion_tokens_total", { model: alpha }), completion);
    const counted = (family: string, route: string): number | undefined =>
      value("requests_total", { family, route, model: alpha, status: "2xx" });
    assert.equal(counted("openai", "/chat/completions"), 2);
    assert.equal(counted("openai", "/messages"), 1);
    assert.equal(counted("ollama", "/chat"), 1);
    assert.equal(value("request_duration_seconds_count", { model: alpha }), 5);
    assert.equal(value("first_token_seconds_count", { route: "/chat/completions" }), undefined, "none was a stream");
    assert.equal(value("queue_wait_seconds_count", { model: alpha }), 5);
    assert.ok((value("queue_wait_seconds_sum") ?? 0) > 0, "the first one waited for the load");
    assert.equal(value("model_loads_total", { model: alpha, outcome: "succeeded" }), 1);
    await until(
      "a pass has seen it",
      async () => (await scrape(gateway)).value("model_loaded", { model: alpha }) === 1,
    );
  });

  for (const [path, route, body] of [
    ["/beta/v1/chat/completions", "/chat/completions", chat],
    ["/beta/v1/chat/completions", "/chat/completions", { ...chat, stream_options: { include_usage: true } }],
    ["/beta/v1/completions", "/completions", { model: alpha, prompt: "hi", max_tokens: 4 }],
    ["/beta/v1/messages", "/messages", chat],
    ["/beta/v1/responses", "/responses", { model: alpha, input: "hi", max_output_tokens: 4 }],
    ["/completion", "/completion", { model: alpha, prompt: "hi", n_predict: 4 }],
    ["/alpha/api/chat", "/chat", { model: alpha, messages, options: { num_predict: 4 } }],
  ] as const)
    await t.test(`a stream of ${path} has a first token, and its tokens are counted`, async () => {
      const before = await scrape(gateway);
      await read(gateway, path, { ...body, stream: true });
      const after = await scrape(gateway);
      const grown = (name: string, labels = {}): number =>
        (after.value(name, labels) ?? 0) - (before.value(name, labels) ?? 0);
      assert.equal(grown("completion_tokens_total", { model: alpha }), 4);
      assert.ok(grown("prompt_tokens_total", { model: alpha }) > 2);
      assert.equal(grown("first_token_seconds_count", { route }), 1);
      assert.equal(grown("request_duration_seconds_count", { route }), 1);
      assert.equal(grown("requests_total", { route, model: alpha, status: "2xx" }), 1);
    });

  await t.test("names that no model has make one series, and addresses that nothing has one", async () => {
    for (let count = 0; count < 30; count++) {
      assert.equal((await gateway.json("/v1/chat/completions", chatWith(`made/up-${count}:Q8_0`))).status, 404);
      assert.equal((await gateway.json("/api/chat", chatWith(`made/up-${count}:Q8_0`))).status, 404);
      assert.equal((await gateway.json(`/nothing/here-${count}`)).status, 404);
    }
    const { text, value } = await scrape(gateway);
    assert.doesNotMatch(text, /made|here-/);
    assert.equal(value("requests_total", { family: "openai", model: "other", status: "4xx" }), 30);
    assert.equal(value("requests_total", { family: "ollama", route: "/chat", status: "4xx" }), 30);
    assert.equal(value("requests_total", { family: "none", route: "other", status: "4xx" }), 30);
  });

  await t.test("a scrape wakes nothing: no pass, no event, no load", async () => {
    await gateway.json("/api/eject-model", postWith({ model: alpha }));
    await untilLoaded(gateway);
    const before = await scrapedUntil(gateway, "it is unloaded", ({ value }) => value("model_unloads_total") === 1);
    await gateway.until("a pass has seen it", ({ models }) =>
      models.every(({ conditions }) => conditions.some(({ reason }) => reason === "Unloaded")),
    );
    // What the eject began may go on: its memory is estimated anew.
    await until("20 scrapes without an event", async () => {
      const lastEvent = gateway.gateway.journal.lastId();
      for (let count = 0; count < 20; count++) await scrape(gateway);
      return gateway.gateway.journal.lastId() === lastEvent;
    });
    assert.deepEqual(await loadedIds(gateway), []);
    const after = await scrape(gateway);
    for (const name of ["model_loads_total", "queue_wait_seconds_count", "actions_total"])
      assert.equal(after.value(name), before.value(name), name);
    assert.ok((after.value("requests_total", { family: "gateway", route: "/metrics" }) ?? 0) > 20);
  });
});

test("a client that leaves, an embedding, and a model that cannot be loaded", async (t) => {
  const folders = await makeFolders(t);
  await cacheModel(folders, "acme/slow", "slow-Q8_0.gguf", modelBytes(slowModel("slow")));
  await cacheModel(folders, "acme/embed", "embed-Q8_0.gguf", modelBytes(embeddingModel("embed")));
  const bytes = modelBytes(talkingModel("broken"));
  await cacheModel(folders, "acme/broken", "broken-Q8_0.gguf", bytes.subarray(0, bytes.length >> 1));
  const embed = "acme/embed:Q8_0";
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: [{ id: "${embed}", preset: { embeddings: true } }]\n`,
    flags: ["--models-max", "1"],
  });
  await gateway.converged();

  const leaving = new AbortController();
  const stream = { ...chatWith("acme/slow:Q8_0", "long", { stream: true }), signal: leaving.signal };
  const response = await fetch(`${gateway.url}/v1/chat/completions`, stream);
  await response.body?.getReader().read();
  const during = await scrape(gateway);
  assert.equal(during.value("requests_in_flight", { model: "acme/slow:Q8_0" }), 1);
  const waits = new AbortController();
  const waiting = fetch(`${gateway.url}/api/embed`, {
    ...postWith({ model: embed, input: "x" }),
    signal: waits.signal,
  }).catch(() => null);
  const queued = await scrapedUntil(
    gateway,
    "a request waits",
    (found) => found.value("requests_waiting", { model: embed, for: "room" }) === 1,
  );
  assert.ok((queued.value("oldest_wait_seconds", { model: embed }) ?? -1) >= 0);
  waits.abort();
  await waiting;
  leaving.abort();
  const labels = { model: "acme/slow:Q8_0", status: "cancelled" };
  await scrapedUntil(gateway, "a request was cancelled", ({ value }) => value("requests_total", labels) === 1);

  const edits = new AbortController();
  const edit = fetch(`${gateway.url}/api/desired?wait=true`, {
    ...patchWith({ models: { "acme/absent:Q8_0": {} } }),
    signal: edits.signal,
  }).catch(() => null);
  await gateway.until("edited", ({ generation }) => generation === 2);
  edits.abort();
  await edit;
  const edited = { family: "gateway", route: "/api/desired", status: "cancelled" };
  await scrapedUntil(gateway, "an edit was left", ({ value }) => value("requests_total", edited) === 1);
  await gateway.json("/api/desired", patchWith({ models: { "acme/absent:Q8_0": null } }));

  const answer = await gateway.json("/api/embed", postWith({ model: embed, input: ["one two"] }));
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  const { value } = await scrape(gateway);
  assert.equal(value("requests_total", { family: "ollama", route: "/embed", model: embed, status: "2xx" }), 1);
  assert.equal(value("prompt_tokens_total", { model: embed }), answer.body["prompt_eval_count"]);
  assert.equal(value("request_duration_seconds_count", { route: "/embed" }), 1);

  const broken = "acme/broken:Q8_0";
  assert.equal((await gateway.json("/v1/chat/completions", chatWith(broken))).status, 500);
  const failed = await scrapedUntil(
    gateway,
    "a load failed",
    (found) => found.value("model_loads_total", { model: broken, outcome: "failed" }) === 1,
  );
  assert.equal(failed.value("requests_total", { model: broken, status: "5xx" }), 1);
  assert.equal(failed.value("request_duration_seconds_count", { model: broken }), undefined);
});

test("drift, reloads, restarts and the bytes of pulls", async (t) => {
  const hub = await startLoopbackHub(t);
  const file = modelBytes(talkingModel("pulled"));
  hub.addRepo("acme/pulled", { files: { "pulled-Q8_0.gguf": file } });
  const gateway = await startTestGateway(t, {
    yaml: 'version: 1\nmodels: [{ id: "acme/pulled:Q8_0", ctxSize: 1024 }]\n',
    environment: { HF_ENDPOINT: hub.endpoint },
  });
  await gateway.converged();
  const first = await scrape(gateway);
  assert.equal(first.value("pull_bytes_total"), file.length);
  assert.equal(first.value("actions_total", { kind: "model.pull", outcome: "succeeded" }), 1);
  assert.equal(first.value("action_duration_seconds_count", { kind: "model.pull" }), 1);
  assert.deepEqual([first.value("drift_mended_total"), first.value("router_restarts_total")], [0, 0]);

  const presetPath = join(gateway.stateDir, "router.preset.ini");
  assert.equal(await gateway.ask("acme/pulled:Q8_0"), answersOf("pulled").hello);
  await writeFile(presetPath, "[*]\noffline = true\n");
  await scrapedUntil(gateway, "the preset is mended", ({ value }) => value("drift_mended_total") === 1);
  assert.match(await readFile(presetPath, "utf8"), /ctx-size = 1024/);

  const { router } = await gateway.converged();
  process.kill(router.pid ?? 0, "SIGKILL");
  const restarted = await scrapedUntil(gateway, "the router is back", ({ value }) => value("drift_mended_total") === 2);
  assert.equal(restarted.value("router_restarts_total"), 1);
  assert.equal(restarted.value("router_connected"), 1);

  // An edit is no drift.
  const reloads = restarted.value("router_reloads_total") ?? 0;
  await gateway.json("/api/set-ctx-size", postWith({ model: "acme/pulled:Q8_0", ctx_size: 512 }));
  await gateway.converged();
  const edited = await scrape(gateway);
  assert.equal(edited.value("router_reloads_total"), reloads + 1);
  assert.equal(edited.value("drift_mended_total"), 2);
  assert.equal(edited.value("generation"), edited.value("observed_generation"));

  await gateway.json("/api/desired", patchWith({ speech: { transcription: { model: "ggml-tiny.bin" } } }));
  assert.equal((await scrape(gateway)).value("speech_requests", { engine: "transcription" }), 0);
});

test("every metric of the alerts and of the dashboard was served by one of these gateways", () => {
  const named = queries.flatMap(([, expr]) => metricsIn(expr)).map(({ name }) => name);
  assert.ok(served.size > 30 && named.length > 40);
  assert.deepEqual(
    named.filter((name) => !served.has(name)),
    [],
  );
});
