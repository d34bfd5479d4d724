// Totals over all models, and the same under vLLM's names, read as an endpoint picker reads them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type LoadedModels, loadOf } from "../../../src/metrics/load.ts";
import { vllmText } from "../../../src/metrics/vllm.ts";
import type { StatusReport } from "../../../src/status/report.ts";
import { pickerView } from "../../support/picker.ts";

type Requests = Pick<StatusReport, "inFlight" | "waiting">;

const idle: Requests = { inFlight: {}, waiting: [] };
const model = (id: string, slots = 4, isPinned = false) => ({ id, slots, isPinned });
const loaded = (...models: LoadedModels["models"]): LoadedModels => ({ models, modelSlots: 3 });
const waits = (name: string, requests: number) => ({ model: name, requests, oldestMs: 1, for: "room" as const });

function totals(requests: Requests, models: LoadedModels) {
  const { queued, running, busyRatio } = loadOf(requests, models);
  return { queued, running, busyRatio };
}

test("an idle gateway is not busy, with and without a loaded model", () => {
  for (const models of [loaded(), loaded(model("a"))])
    assert.deepEqual(totals(idle, models), { queued: 0, running: 0, busyRatio: 0 });
});

test("the share is that of the parallel slots of all loaded models", () => {
  const inFlight = { a: 2, b: 1 };
  assert.deepEqual(totals({ inFlight, waiting: [] }, loaded(model("a"), model("b", 2))), {
    queued: 0,
    running: 3,
    busyRatio: 0.5,
  });
});

test("what a process has more than slots is queued, and no share is above 1", () => {
  const requests = { inFlight: { a: 7 }, waiting: [waits("b", 2), waits("b", 1)] };
  assert.deepEqual(totals(requests, loaded(model("a", 4))), { queued: 6, running: 4, busyRatio: 1 });
  assert.deepEqual(loadOf(requests, loaded(model("a"))).waitingModels, ["b"]);
});

test("responses of a process that is no longer listed still run", () => {
  assert.deepEqual(totals({ inFlight: { gone: 2 }, waiting: [] }, loaded()), { queued: 0, running: 2, busyRatio: 1 });
});

test("a picker of vLLM finds the models as resident adapters, and what is free", () => {
  const load = loadOf(
    { inFlight: { "acme/a:Q8_0": 1 }, waiting: [waits("acme/c:Q8_0", 2)] },
    loaded(model("acme/a:Q8_0"), model('b"', 4, true)),
  );
  const picker = pickerView(vllmText(load, 1_700_000_000));
  assert.deepEqual([picker.first("vllm:num_requests_waiting"), picker.first("vllm:num_requests_running")], [2, 1]);
  assert.equal(picker.first("vllm:kv_cache_usage_perc"), 0.125);
  assert.deepEqual(picker.labels("vllm:lora_adapter_loaded"), [
    { adapter_name: "acme/a:Q8_0", level: "gpu", pinned: "false" },
    { adapter_name: 'b"', level: "gpu", pinned: "true" },
  ]);
  assert.deepEqual(
    [picker.first("vllm:num_gpu_loaded_lora_adapters"), picker.first("vllm:max_gpu_lora_adapters")],
    [2, 3],
  );
  assert.deepEqual(picker.labels("vllm:lora_requests_info"), [
    { max_lora: "3", running_lora_adapters: 'acme/a:Q8_0,b"', waiting_lora_adapters: "acme/c:Q8_0" },
  ]);
});

test("without a loaded model there is no family of adapters, and their number says so", () => {
  const picker = pickerView(vllmText(loadOf(idle, loaded()), 1_700_000_000));
  assert.throws(() => picker.first("vllm:lora_adapter_loaded"), /not found/);
  assert.equal(picker.first("vllm:num_gpu_loaded_lora_adapters"), 0);
});
