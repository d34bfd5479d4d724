// What the parameters of an Ollama model mean here: settings of the process, and members of requests.
import { requestMembers } from "../../schemas/request-members.ts";
import type { Json, JsonObject } from "../core/json.ts";
import type { PresetValue } from "../desired/document/document.ts";

export interface OllamaSettings {
  /** Tokens. */
  readonly ctxSize: number | null;
  readonly preset: Readonly<Record<string, PresetValue>>;
  /** What requests get that do not set it, by the engine's names. */
  readonly set: JsonObject;
  /** Parameters without a counterpart. */
  readonly unknown: readonly string[];
  /** Whether stop sequences were left out that are control tokens of the template. */
  readonly hasTemplateStops: boolean;
}

/** Options of the process by Ollama's names. */
const options: Readonly<Record<string, string>> = {
  num_gpu: "gpu-layers",
  num_thread: "threads",
  num_batch: "batch-size",
  main_gpu: "main-gpu",
};

/** Members of requests that have another name there. */
const renamed: Readonly<Record<string, string>> = { num_predict: "max_tokens", num_keep: "n_keep" };

export function settingsOf(params: JsonObject): OllamaSettings {
  let ctxSize: number | null = null;
  let hasTemplateStops = false;
  const preset: Record<string, PresetValue> = {};
  const set: Record<string, Json> = {};
  const unknown: string[] = [];
  for (const [name, value] of Object.entries(params)) {
    const option = options[name];
    const member = renamed[name] ?? name;
    if (name === "num_ctx" && isCount(value)) ctxSize = value;
    else if (name === "stop") {
      const stops = [value].flat().filter((stop): stop is string => typeof stop === "string" && stop !== "");
      const own = stops.filter((stop) => !isControlToken(stop));
      hasTemplateStops ||= own.length < stops.length;
      if (own.length > 0) set["stop"] = own;
    } else if (name === "use_mmap" && typeof value === "boolean") {
      if (!value) preset["no-mmap"] = true;
    } else if (option !== undefined && typeof value === "number") {
      // Below 0 the engine decides, there as here.
      if (value >= 0) preset[option] = value;
    } else if (typeof value === "number" && requestMembers.has(member)) {
      // No limit: as without it.
      if (member !== "max_tokens" || value > 0) set[member] = value;
    } else unknown.push(name);
  }
  return { ctxSize, preset, set, unknown, hasTemplateStops };
}

function isCount(value: Json): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

/** `<|eot_id|>`, `<end_of_turn>`, `[INST]`: the engine stops at the end of a turn by the model's own template. */
function isControlToken(text: string): boolean {
  return /^(?:<[^<>\s]+>|\[\/?[A-Z_]+\]|<<\/?SYS>>)$/.test(text);
}
