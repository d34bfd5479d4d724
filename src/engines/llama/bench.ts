// llama-bench: a model's settings as its arguments, and what it has measured. Pure.
import type { BenchBody } from "../../../schemas/admin.ts";
import { type Frozen, isJsonObject, parseJson } from "../../core/json.ts";

export interface BenchSettings {
  readonly args: readonly string[];
  /** What is measured with, by the preset's keys. */
  readonly settings: Readonly<Record<string, string>>;
  /** Keys that llama-bench has no option for. */
  readonly leftOut: readonly string[];
}

export type BenchResult = Pick<Frozen<BenchBody>, "build" | "hardware" | "type" | "tests">;
type BenchTest = BenchResult["tests"][number];

/** Options with the same value there. */
const sameValue = new Set(
  (
    "batch-size ubatch-size cache-type-k cache-type-v flash-attn threads cpu-mask cpu-strict poll prio numa n-cpu-moe " +
    "split-mode main-gpu load-mode lazy-mode"
  ).split(" "),
);
const switches = new Set(["kv-offload", "op-offload", "host", "repack", "embeddings"]);
/** By what their values are separated there: a comma would be one more measurement. */
const separators: ReadonlyMap<string, string> = new Map([
  ["device", "/"],
  ["tensor-split", "/"],
  ["override-tensor", ";"],
]);
const synonyms: ReadonlyMap<string, string> = new Map([
  ["gpu-layers", "n-gpu-layers"],
  ["embedding", "embeddings"],
  ["rerank", "embeddings"],
  ["reranking", "embeddings"],
]);
/** Keys of a section that set nothing of the model's process. */
const notSettings = new Set(["hf-repo", "model", "model-url", "tags", "offline", "load-on-startup", "stop-timeout"]);

/** `values`: what the router would use for the model. `help`: llama-bench's own; options that it lacks are left out. */
export function benchSettings(values: ReadonlyMap<string, string>, help: string): BenchSettings {
  const known = new Set([...help.matchAll(/--([a-z][a-z-]*)/g)].map(([, name = ""]) => name));
  const args: string[] = [];
  const settings: Record<string, string> = {};
  const leftOut: string[] = [];
  for (const [key, value] of [...values].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (notSettings.has(key)) continue;
    const [name, given] = optionOf(synonyms.get(key) ?? key, value, known) ?? [];
    if (name === undefined || given === undefined || !known.has(name)) leftOut.push(key);
    else {
      args.push(`--${name}`, given);
      settings[key] = value;
    }
  }
  // A model for embeddings writes nothing.
  if (args[args.indexOf("--embeddings") + 1] === "1") args.push("--n-gen", "0");
  return { args, settings, leftOut };
}

function optionOf(key: string, value: string, known: ReadonlySet<string>): readonly [string, string] | null {
  if (sameValue.has(key)) return [key, value];
  // llama-server also takes `auto` and `all`.
  if (key === "n-gpu-layers" && /^\d+$/.test(value)) return [key, value];
  const separator = separators.get(key);
  if (separator !== undefined) return [key, value.replaceAll(",", separator)];
  const name = key.replace(/^no-/, "");
  if (!switches.has(name)) return null;
  const isOn = ["true", "1", "on", "enabled"].includes(value) !== key.startsWith("no-");
  return known.has(name) ? [name, isOn ? "1" : "0"] : [`no-${name}`, isOn ? "0" : "1"];
}

/** Of `--output json`; null where it is something else. */
export function readBench(output: string): BenchResult | null {
  const rows = parseJson(output);
  if (!Array.isArray(rows)) return null;
  const read = rows.filter(isJsonObject);
  const tests = read.flatMap((row): BenchTest[] => {
    const { n_prompt: prompt, n_gen: generated, avg_ts: tokensPerSecond, stddev_ts: deviation } = row;
    if (typeof tokensPerSecond !== "number" || typeof deviation !== "number") return [];
    if (typeof prompt !== "number" || typeof generated !== "number") return [];
    const what = generated > 0 ? { kind: "generation", tokens: generated } : { kind: "prompt", tokens: prompt };
    return [{ ...what, tokensPerSecond, deviation } as BenchTest];
  });
  const [first] = read;
  if (first === undefined || tests.length === 0) return null;
  const {
    build_number: number,
    build_commit: commit,
    cpu_info: cpu,
    gpu_info: gpu,
    backends,
    model_type: type,
  } = first;
  return {
    build: typeof number === "number" && typeof commit === "string" ? `${number} (${commit})` : "unknown",
    hardware: [cpu, gpu, backends].filter((part): part is string => typeof part === "string" && part !== "").join(", "),
    type: typeof type === "string" ? type : "unknown",
    tests,
  };
}
