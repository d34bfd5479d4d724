// Which options of the engine a document may set, and with which values. What is not on the list is refused: a list of what
// is dangerous was never whole, and `mcp-servers-json` ran any command as the gateway's user. Pure.
import { presetKeyPattern, presetOptions } from "../../schemas/preset-options.ts";

/** Options that no setting lifts: they have a field of their own, belong to the router, or end its process. */
const reserved: ReadonlyMap<string, string> = new Map(
  (
    [
      ["use ctxSize", "c ctx-size"],
      [
        "the model's id or `source` names its files",
        "m model mu model-url hf hfr hf-repo hff hf-file hft hf-token dr docker-repo",
      ],
      ["use mmproj beside preset", "mm mmproj mmu mmproj-url"],
      ["use chatTemplate", "chat-template-file"],
      ["use lora beside preset", "lora lora-scaled"],
      ["use draft beside preset", "md model-draft spec-draft-model hfd hfrd hf-repo-draft spec-draft-hf"],
      ["use rpc.workers", "rpc"],
      [
        "the router owns it",
        "a alias host port reuse-port api-key api-key-file path api-prefix ssl-key-file ssl-cert-file",
      ],
      [
        "the gateway owns it",
        "tags models-dir models-preset models-max models-autoload no-models-autoload offline stop-timeout load-on-startup",
      ],
      [
        "the model's process would print something and end",
        "h help usage version license cl cache-list list-devices completion-bash",
      ],
    ] as const
  ).flatMap(([why, keys]) => keys.split(" ").map((key): [string, string] => [key, why])),
);

/** By their names, as the next engine may have more of them. */
const runsCommands = /mcp|tool|agent|ffmpeg|exec|shell|command|^(?:no-)?ag$/;

/** Why an option can never be set by a document; null where `--preset-allow` may add it, or need not. */
function whyNever(key: string): string | null {
  return reserved.get(key) ?? (runsCommands.test(key) ? "it would have the engine run commands" : null);
}

/** What `--preset-allow` adds to the list. */
export type PresetAllow = Pick<ReadonlySet<string>, "has">;

export const noneAllowed: PresetAllow = new Set();

/** Of a document for a gateway whose `--preset-allow` is not known here: it decides. */
export const anyAllowed: PresetAllow = { has: () => true };

/** Why a document may not set this option; null where it may. */
export function presetKeyProblem(key: string, allowed: PresetAllow): string | null {
  const never = whyNever(key);
  if (never !== null) return `preset key ${key} cannot be set here: ${never}`;
  if (presetOptions.has(key) || allowed.has(key)) return null;
  return `preset key ${key} is not on the list of options that a document may set (start the gateway with --preset-allow ${key} to add it)`;
}

/** Why the preset file cannot hold a value; null where it can. The value is not repeated, as it may be a secret. */
export function presetValueProblem(key: string, value: string | number | boolean): string | null {
  const text = String(value);
  // The router cuts a value at `#` or `;`, and trims it: what would not arrive whole is refused rather than changed.
  // U+2028 ended a line for the reader of single entries: the lines of one model were written again and again, in every model's section.
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[#;\u0000-\u001f\u007f\u2028\u2029]|\p{Surrogate}/u.test(text))
    return `preset value of ${key} has a character that the preset file cannot hold`;
  if (text !== text.trim() || text === "") return `preset value of ${key} is empty or has blanks at its ends`;
  // The router passes it on as an argument: where an option's value may be left out it would count as the next option.
  if (/^-[^\d.]/.test(text)) return `preset value of ${key} begins with a dash and is no number`;
  return null;
}

/** Why `--preset-allow` cannot name this option; null where it can. */
export function presetAllowProblem(key: string): string | null {
  if (reserved.has(key) || new RegExp(presetKeyPattern).test(key)) return whyNever(key);
  return "it is not the long form of a llama-server option, without dashes";
}
