// A llama-server command as a model of a document: its file, its settings, and the flags without a counterpart.
import { presetOptions } from "../../schemas/preset-options.ts";
import { requestMembers } from "../../schemas/request-members.ts";
import { parseModelId } from "../core/ids.ts";
import { type Json, type JsonObject, parseJson } from "../core/json.ts";
import { type PresetAllow, presetKeyProblem, presetValueProblem } from "../core/preset-keys.ts";
import type { PresetValue } from "../desired/document/document.ts";
import { commandWords, type Flag, flagsOf } from "./command-words.ts";
import type { SideFile } from "./imported.ts";
import { idOfFile } from "./naming.ts";

/** Where a model comes from: without a `source`, the hub. */
export interface ModelFile {
  readonly id: string;
  /** Absolute. */
  readonly source?: string;
}

export interface ServerCommand {
  readonly file: ModelFile;
  readonly draft: ModelFile | null;
  /** Tokens. */
  readonly ctxSize: number | null;
  readonly preset: Readonly<Record<string, PresetValue>>;
  readonly aliases: readonly string[];
  /** Without their names in the document's folder. */
  readonly beside: readonly Omit<SideFile, "name">[];
  readonly losses: readonly { readonly flag: string; readonly message: string }[];
}

export interface CommandSurroundings {
  /** Makes a path absolute. */
  readonly resolve: (path: string) => string;
  readonly presetAllow: PresetAllow;
}

/** The gateway sets these itself. */
const own = new Set(
  "host port model hf-repo hf-file no-webui webui no-ui ui metrics slots no-slots offline".split(" "),
);

const fileFields: Readonly<Record<string, SideFile["field"]>> = {
  mmproj: "mmproj",
  "chat-template-file": "chatTemplate",
  lora: "lora",
};

/** Why it is none, in words that follow the model's name. */
export function serverCommand(text: string, { resolve, presetAllow }: CommandSurroundings): ServerCommand | string {
  const words = commandWords(text);
  const [first = ""] = words;
  const at = words.findIndex((word) => /(?:^|[\\/])llama-server[^\\/\s]*$/.test(word));
  if (at < 0 || /(?:^|[\\/])(?:docker|podman)$/.test(first))
    return first === ""
      ? "has no command"
      : `runs ${first}, which the gateway does not: it runs llama-server on this machine`;
  const flags = flagsOf(words.slice(at + 1));
  const valueOf = (...names: readonly string[]): string | null =>
    flags.findLast(({ name, value }) => names.includes(name) && value !== null)?.value ?? null;
  const file = fileOf(valueOf("model"), valueOf("hf-repo"), valueOf("hf-file"), resolve);
  if (file === null) return "names no model file by -m or -hf";
  const draftPath = valueOf("model-draft", "spec-draft-model");
  const draft = fileOf(draftPath, valueOf("hf-repo-draft", "spec-draft-hf"), null, resolve);
  const preset: Record<string, PresetValue> = {};
  const losses: { flag: string; message: string }[] = [];
  const beside: Omit<SideFile, "name">[] = [];
  let ctxSize: number | null = null;
  // Not the words after it: a token may be among them.
  if (at > 0) losses.push({ flag: first, message: `${first} before llama-server has no counterpart` });
  for (const flag of flags) {
    const { name, written, value } = flag;
    const field = fileFields[name];
    if (own.has(name) || /^(?:model-draft|spec-draft-model|hf-repo-draft|spec-draft-hf|alias)$/.test(name)) continue;
    if (name === "ctx-size") {
      const tokens = Number(value);
      if (Number.isSafeInteger(tokens) && tokens > 0) ctxSize = tokens;
      else
        losses.push({
          flag: written,
          message: `${written} ${value ?? ""} (the trained size) has no counterpart: set \`ctxSize\``,
        });
    } else if (field !== undefined && value !== null)
      for (const path of field === "lora" ? value.split(",") : [value]) beside.push({ field, path: resolve(path) });
    else {
      const option = optionOf(flag);
      const problem = presetKeyProblem(name, presetAllow) ?? presetValueProblem(name, option);
      if (problem === null) preset[name] = option;
      else losses.push({ flag: written, message: `${written} has no counterpart: ${whyNot(name, problem)}` });
    }
  }
  const aliases =
    valueOf("alias")
      ?.split(",")
      .map((alias) => alias.trim()) ?? [];
  return { file, draft, ctxSize, preset, aliases, beside, losses };
}

/** Of an option off the list a person would have to change the gateway's own settings. */
function whyNot(name: string, problem: string): string {
  return presetKeyProblem(name, new Set([name])) === null && !presetOptions.has(name)
    ? `the gateway takes it with --preset-allow ${name} only`
    : problem.replace(/^preset (?:key|value of) \S+ /, "it ");
}

function optionOf({ name, value }: Flag): PresetValue {
  // Older builds have it as a switch.
  if (value === null) return name === "flash-attn" ? "on" : true;
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(value) ? Number(value) : value;
}

function fileOf(
  path: string | null,
  repo: string | null,
  file: string | null,
  resolve: (path: string) => string,
): ModelFile | null {
  if (path !== null) {
    const { id, isCached } = idOfFile(resolve(path));
    return isCached ? { id } : { id, source: resolve(path) };
  }
  if (repo === null) return null;
  const [name = "", quant] = repo.split(":");
  // As llama-server takes it: Q4_K_M, unless a quant or a file is named.
  const tag = file === null ? (quant ?? "Q4_K_M") : file.replace(/\.gguf$/i, "").replace(/^.*\//, "");
  const id = `${name}:${tag}`;
  return parseModelId(id) === null ? null : { id };
}

const renamed: Readonly<Record<string, string>> = {
  temp: "temperature",
  predict: "max_tokens",
  "n-predict": "max_tokens",
};

/** Options of the process that a request can have as well, by their names in a request, and the others. */
export function splitPreset(preset: Readonly<Record<string, PresetValue>>): {
  readonly set: JsonObject;
  readonly others: Readonly<Record<string, PresetValue>>;
} {
  const set: Record<string, Json> = {};
  const others: Record<string, PresetValue> = {};
  for (const [name, value] of Object.entries(preset)) {
    const member = renamed[name] ?? name.replaceAll("-", "_");
    const json = name === "chat-template-kwargs" ? (parseJson(String(value)) as Json) : value;
    if (requestMembers.has(member) && json !== null && name !== "lora") set[member] = json;
    else others[name] = value;
  }
  return { set, others };
}
