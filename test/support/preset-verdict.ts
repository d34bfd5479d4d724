// What a document may do with an option of the engine, in a word, whatever the process was started with.
import { presetOptions } from "../../schemas/preset-options.ts";
import { presetKeyProblem } from "../../src/core/preset-keys.ts";

export function presetVerdict(key: string): string {
  const never = presetKeyProblem(key, new Set([key]));
  if (never === null) return presetOptions.get(key) ?? "denied";
  return never.includes("run commands") ? "command" : "reserved";
}
