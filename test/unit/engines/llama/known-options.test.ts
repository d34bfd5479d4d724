// Which options an engine's help text names.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseHelp } from "../../../../src/engines/llama/engine-source.ts";

const help = [
  "----- common params -----",
  "",
  "-h,    --help, --usage                  print usage and exit",
  "-c,    --ctx-size N                     size of the prompt context (default: 0, 0 = loaded from model)",
  "                                        (env: LLAMA_ARG_CTX_SIZE)",
  "-ts,   --tensor-split N0,N1,N2,...      fraction of the model to offload to each GPU, -not-this one",
  "                                        as with --not-an-option",
  "-cnv,  --conversation, --no-conversation",
  "                                        run in conversation mode (env: LLAMA_ARG_CONVERSATION)",
  "--perf, --no-perf                       whether to time (default: false)",
  "--spec-draft-hf, -hfd, --hf-repo-draft <user>/<model>[:quant]",
].join("\n");

test("every spelling of every option, and the variables that stand for one", () => {
  const keys = parseHelp(help);
  const expected = [
    "h",
    "help",
    "usage",
    "c",
    "ctx-size",
    "LLAMA_ARG_CTX_SIZE",
    "ts",
    "tensor-split",
    "cnv",
    "conversation",
    "no-conversation",
    "LLAMA_ARG_CONVERSATION",
    "perf",
    "no-perf",
    "spec-draft-hf",
    "hfd",
    "hf-repo-draft",
  ];
  for (const key of expected) assert.ok(keys?.has(key), key);
  for (const key of ["not-an-option", "N1", "", "-c", "--ctx-size"]) assert.ok(!keys?.has(key), key);
});

test("keys of the preset file that are no options", () => {
  for (const key of ["load-on-startup", "stop-timeout"]) assert.ok(parseHelp(help)?.has(key));
});

test("lines that end as on Windows", () => assert.ok(parseHelp(help.replaceAll("\n", "\r\n"))?.has("no-conversation")));

test("a text that is no help says nothing", () => {
  for (const text of ["", "error: no such file", "--ctx-size"])
    assert.equal(parseHelp(text === "--ctx-size" ? " --ctx-size" : text), null);
});
