// A command line in words, as a POSIX shell and llama-swap split it: quotes, backslashes, and lines that are comments.

export function commandWords(text: string): string[] {
  const lines = withoutComments(text).split("\n");
  const joined = lines.map((line) => line.replace(/\\\s*$/, " ")).join("\n");
  const words: string[] = [];
  let word: string | null = null;
  for (const [, single, double, escaped, plain, blank] of joined.matchAll(
    /'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^\s'"\\]+|['"\\])|(\s+)/g,
  )) {
    if (blank !== undefined) {
      if (word !== null) words.push(word);
      word = null;
      continue;
    }
    word = (word ?? "") + (single ?? double?.replaceAll(/\\(["\\$`])/g, "$1") ?? escaped ?? plain ?? "");
  }
  return word === null ? words : [...words, word];
}

/** Before macros are replaced: one of several lines would not be a comment to its end. */
export function withoutComments(text: string): string {
  return text
    .split("\n")
    .filter((line) => !line.trim().startsWith("#"))
    .join("\n");
}

export interface Flag {
  /** The long name without dashes where it is known, else as it stands. */
  readonly name: string;
  /** As it was written. */
  readonly written: string;
  /** Null: a switch. */
  readonly value: string | null;
}

const shortForms =
  "c:ctx-size ngl:gpu-layers m:model hf:hf-repo hfr:hf-repo hff:hf-file t:threads tb:threads-batch C:cpu-mask " +
  "Cr:cpu-range Cb:cpu-mask-batch Crb:cpu-range-batch n:predict b:batch-size ub:ubatch-size fa:flash-attn " +
  "kvo:kv-offload nkvo:no-kv-offload ctk:cache-type-k ctv:cache-type-v ctkd:cache-type-k-draft ctvd:cache-type-v-draft " +
  "dt:defrag-thold lm:load-mode lzm:lazy-mode dev:device devd:device-draft ot:override-tensor otd:override-tensor-draft " +
  "cmoe:cpu-moe cmoed:cpu-moe-draft ncmoe:n-cpu-moe ncmoed:n-cpu-moe-draft ncffn:n-cpu-ffn sm:split-mode " +
  "ts:tensor-split mg:main-gpu fit:fit fitt:fit-target fitc:fit-ctx s:seed l:logit-bias j:json-schema " +
  "bs:backend-sampling ctxcp:ctx-checkpoints cms:checkpoint-min-step cram:cache-ram kvu:kv-unified no-kvu:no-kv-unified " +
  "r:reverse-prompt sp:special np:parallel cb:cont-batching nocb:no-cont-batching mm:mmproj mmdev:mmproj-device " +
  "a:alias rea:reasoning sps:slot-prompt-similarity md:model-draft hfd:hf-repo-draft hfrd:hf-repo-draft ngld:gpu-layers-draft " +
  "cd:ctx-size-draft td:threads-draft tbd:threads-batch-draft v:verbose lv:verbosity";

const longNames: ReadonlyMap<string, string> = new Map(
  shortForms.split(" ").map((pair) => pair.split(":") as [string, string]),
);

/** The flags of a llama-server command; words that belong to none are dropped. */
export function flagsOf(words: readonly string[]): Flag[] {
  const flags: Flag[] = [];
  for (const [index, written] of words.entries()) {
    if (!isFlag(written)) continue;
    const next = words[index + 1];
    const bare = written.replace(/^--?/, "");
    const name = written.startsWith("--") ? bare : (longNames.get(bare) ?? bare);
    flags.push({ name, written, value: next === undefined || isFlag(next) ? null : next });
  }
  return flags;
}

/** `-1` is a value. */
function isFlag(word: string): boolean {
  return /^--?[A-Za-z]/.test(word);
}
