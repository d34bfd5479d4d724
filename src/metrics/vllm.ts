// The load signals under vLLM's names, for endpoint pickers that read those: a loaded model stands for a LoRA adapter on a GPU.
// docs/scale-out.md has who reads which. Pure.
import type { Family } from "./families.ts";
import type { Load } from "./load.ts";
import { familyText, labelText, type Sample } from "./text.ts";

const gauge = (help: string, ...labels: readonly string[]): Family => ({ type: "gauge", help, labels });

const vllmFamilies = {
  "vllm:num_requests_waiting": gauge("As model_gateway_queued_requests."),
  "vllm:num_requests_running": gauge("As model_gateway_running_requests."),
  "vllm:kv_cache_usage_perc": gauge("As model_gateway_busy_ratio: a fraction, in spite of its name."),
  "vllm:lora_adapter_loaded": gauge("1 for each loaded model.", "adapter_name", "level", "pinned"),
  "vllm:num_gpu_loaded_lora_adapters": gauge("As model_gateway_loaded_models."),
  "vllm:max_gpu_lora_adapters": gauge("As model_gateway_model_slots."),
  "vllm:lora_requests_info": gauge(
    "Loaded models, and models that requests wait for; the value is the time in seconds.",
    "max_lora",
    "running_lora_adapters",
    "waiting_lora_adapters",
  ),
} as const satisfies Readonly<Record<string, Family>>;

/** `at`: seconds since the epoch. */
function vllmSamples(
  { queued, running, busyRatio, models, modelSlots, waitingModels }: Load,
  at: number,
): Readonly<Record<keyof typeof vllmFamilies, readonly Sample[]>> {
  const one = (value: number, labels: Readonly<Record<string, string>> = {}): readonly Sample[] => [
    { value, labels: labelText(labels) },
  ];
  return {
    "vllm:num_requests_waiting": one(queued),
    "vllm:num_requests_running": one(running),
    "vllm:kv_cache_usage_perc": one(busyRatio),
    "vllm:lora_adapter_loaded": models.flatMap(({ id, isPinned }) =>
      one(1, { adapter_name: id, level: "gpu", pinned: String(isPinned) }),
    ),
    "vllm:num_gpu_loaded_lora_adapters": one(models.length),
    "vllm:max_gpu_lora_adapters": one(modelSlots),
    "vllm:lora_requests_info": one(at, {
      max_lora: String(modelSlots),
      running_lora_adapters: models.map(({ id }) => id).join(","),
      waiting_lora_adapters: waitingModels.join(","),
    }),
  };
}

export function vllmText(load: Load, at: number): string {
  return Object.entries(vllmSamples(load, at))
    .map(([name, samples]) => familyText(name, vllmFamilies[name as keyof typeof vllmFamilies], samples))
    .join("");
}
