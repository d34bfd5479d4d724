// A gateway among others: its load as endpoint pickers read it, its document's hash, and its way out of a balancer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, slowModel } from "../support/models.ts";
import { pickerView } from "../support/picker.ts";
import { chatWith } from "../support/requests.ts";
import { until } from "../support/scratch.ts";

const key = "mgw-test-key-of-a-sufficient-length-0123456789";
const authorization = `Bearer ${key}`;

test("a gateway behind a picker and a balancer", async (t) => {
  const folders = await makeFolders(t);
  const talker = await cacheTalker(folders, "acme/alpha");
  await cacheModel(folders, "acme/slow", "slow-Q8_0.gguf", modelBytes(slowModel("slow")));
  const slow = "acme/slow:Q8_0";
  const gateway = await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${talker}", "${slow}"]\n`,
    flags: ["--models-max", "2", "--metrics-names", "vllm", "--metrics-open", "127.0.0.0/8", "--stop-delay", "3"],
    environment: { GATEWAY_LICENSE_KEY: key },
  });
  await gateway.converged();
  const text = async (): Promise<string> => {
    const response = await fetch(`${gateway.url}/metrics`);
    assert.equal(response.status, 200);
    return response.text();
  };
  const picker = async () => pickerView(await text());
  const chat = (model: string, content: string, body: object = {}): Promise<Response> => {
    const headers = { "content-type": "application/json", authorization };
    return fetch(`${gateway.url}/v1/chat/completions`, { ...chatWith(model, content, body), headers });
  };

  await t.test("nothing is loaded: every total is there, and 0", async () => {
    const { first } = await picker();
    for (const total of ["queued_requests", "running_requests", "busy_ratio", "loaded_models"])
      assert.equal(first(`model_gateway_${total}`), 0, total);
    for (const total of ["num_requests_waiting", "num_requests_running", "kv_cache_usage_perc"])
      assert.equal(first(`vllm:${total}`), 0, total);
    assert.deepEqual([first("model_gateway_model_slots"), first("vllm:max_gpu_lora_adapters")], [2, 2]);
  });

  await t.test("the networks read the metrics only", async () => {
    assert.equal((await fetch(`${gateway.url}/api/desired`)).status, 401);
    assert.equal((await fetch(`${gateway.url}/v1/models`)).status, 401);
  });

  const stream = await chat(slow, "long", { stream: true });
  const reader = stream.body?.getReader();
  await reader?.read();

  await t.test("an answer is under way: the first sample of each family has the totals", async () => {
    const { first, labels } = await picker();
    assert.deepEqual([first("vllm:num_requests_running"), first("vllm:num_requests_waiting")], [1, 0]);
    assert.deepEqual([first("model_gateway_loaded_models"), first("vllm:num_gpu_loaded_lora_adapters")], [1, 1]);
    const ratio = first("vllm:kv_cache_usage_perc");
    assert.ok(ratio > 0 && ratio <= 1, String(ratio));
    assert.equal(ratio, first("model_gateway_busy_ratio"));
    assert.deepEqual(labels("vllm:lora_adapter_loaded"), [{ adapter_name: slow, level: "gpu", pinned: "false" }]);
  });

  await t.test("the document's hash is the same wherever it is told, and moves with the document", async () => {
    const told = async (): Promise<readonly unknown[]> => [
      (await fetch(`${gateway.url}/readyz`)).headers.get("x-document-hash"),
      (await picker()).labels("model_gateway_document_info")[0]?.["hash"],
      (await gateway.json("/status", { headers: { authorization } })).body["documentHash"],
    ];
    const [before, ...others] = await told();
    assert.match(String(before), /^[0-9a-f]{64}$/);
    assert.deepEqual(others, [before, before]);
    // The same document: its keys in another order, with a comment.
    await gateway.writeConfig(`# a comment\nmodels: ["${talker}", "${slow}"]\nversion: 1\n`);
    await gateway.json("/api/reconcile?wait=true", { method: "POST", headers: { authorization } });
    assert.equal((await told())[2], before);
    await gateway.writeConfig(`version: 1\nmodels: [{ id: "${talker}", aliases: ["chat"] }, "${slow}"]\n`);
    await gateway.until("read", ({ documentHash }) => documentHash !== before);
    await until("it is told everywhere", async () => new Set(await told()).size === 1);
  });

  await t.test(
    "told to stop, it is not ready at once, takes requests for a while, and finishes what it has",
    async () => {
      const stopped = gateway.gateway.stop();
      const readyz = await gateway.json("/readyz");
      assert.deepEqual([readyz.status, readyz.body["reason"]], [503, "ShuttingDown"]);
      assert.equal((await picker()).first("model_gateway_ready"), 0);
      const late = await chat(talker, "hi");
      assert.deepEqual([late.status, late.headers.get("connection")], [200, "close"]);
      const { choices } = (await late.json()) as { choices: { message: { content: string } }[] };
      assert.equal(choices[0]?.message.content, answersOf("acme/alpha").hello);
      await reader?.cancel();
      await stopped;
      await assert.rejects(fetch(`${gateway.url}/livez`));
    },
  );
});
