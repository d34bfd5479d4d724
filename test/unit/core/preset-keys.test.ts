// Which preset keys and values a document may not set.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { presetKeyPattern, presetOptions } from "../../../schemas/preset-options.ts";
import {
  noneAllowed,
  presetAllowProblem,
  presetKeyProblem,
  presetValueProblem,
} from "../../../src/core/preset-keys.ts";
import { readEntry } from "../../../src/plan/preset-file.ts";
import { presetVerdict } from "../../support/preset-verdict.ts";

const refused: readonly (readonly [why: RegExp, keys: string])[] = [
  [/use ctxSize/, "c ctx-size"],
  [/use rpc\.workers/, "rpc"],
  [/use mmproj beside preset/, "mm mmproj mmproj-url"],
  [/use chatTemplate/, "chat-template-file"],
  [/use lora beside preset/, "lora lora-scaled"],
  [/use draft beside preset/, "md model-draft spec-draft-model spec-draft-hf"],
  [/names its files/, "m model hf hfr hf-repo hf-file model-url hf-token docker-repo"],
  [/router owns/, "host port alias api-key ssl-key-file api-prefix"],
  [/gateway owns/, "models-dir models-max offline stop-timeout load-on-startup tags"],
  [/print something and end/, "help version list-devices"],
  [/run commands/, "mcp-servers-json mcp-servers-config ui-mcp-proxy no-webui-mcp-proxy tools tools-runtime"],
  [/run commands/, "agent no-agent ag no-ag video-ffmpeg-dir tool-of-tomorrow run-shell"],
];

for (const [why, keys] of refused) {
  test(`never, whatever the process was started with: ${keys}`, () => {
    for (const key of keys.split(" ")) {
      assert.match(presetKeyProblem(key, new Set([key])) ?? "", why);
      assert.match(presetAllowProblem(key) ?? "", why);
    }
  });
}

test("what is on no list is refused, and --preset-allow adds it", () => {
  const others =
    "grammar-file json-schema-file log-file log-prompts-dir slot-save-path media-path lookup-cache-dynamic";
  for (const key of `${others} control-vector props timeout new-option-of-tomorrow np ngl jf`.split(" ")) {
    assert.match(presetKeyProblem(key, noneAllowed) ?? "", new RegExp(`--preset-allow ${key}\\b`));
    assert.equal(presetKeyProblem(key, new Set([key])), null);
    assert.equal(presetAllowProblem(key), null);
    assert.equal(presetVerdict(key), "denied");
  }
});

test("--preset-allow takes no other spelling than the document", () => {
  for (const key of ["LLAMA_ARG_LOG_FILE", "log_file", "--log-file", "Log-File", "log-file=x", ""])
    assert.notEqual(presetAllowProblem(key), null, key);
});

test("no option on the list is kept from documents for another reason, and each is a long name", () => {
  assert.ok(presetOptions.size > 150);
  for (const [key, kind] of presetOptions) {
    assert.equal(presetVerdict(key), kind);
    assert.equal(presetKeyProblem(key, noneAllowed), null);
    assert.match(key, new RegExp(presetKeyPattern));
    assert.doesNotMatch(key, /file|path|dir$|url|repo|^host|^hf|log-|config|api|cors|model/);
  }
});

const values: readonly (readonly [value: string | number | boolean, allowed: boolean])[] = [
  ["on", true],
  [2, true],
  [0.5, true],
  [-1, true],
  ["-0.5,2", true],
  ["-.5", true],
  [false, true],
  ["a b=c", true],
  ["a#b", false],
  ["a;b", false],
  ["a\nb", false],
  ["a\u0000b", false],
  ["a\u2028b", false],
  ["a\u2029b", false],
  ["a\ud800b", false],
  ["\ud83d\ude00", true],
  ["", false],
  [" a", false],
  ["a ", false],
  ["--agent", false],
  ["-ag", false],
];

for (const [value, allowed] of values) {
  test(`value ${JSON.stringify(value)} is ${allowed ? "taken" : "refused"}`, () =>
    assert.equal(presetValueProblem("flash-attn", value) === null, allowed));
}

test("what is taken arrives whole at a reader of the file", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-zA-Z0-9 ./,:#;_-]{0,20}$/), (value) => {
      if (presetValueProblem("chat-template", value) === null)
        assert.equal(readEntry(`chat-template = ${value}`)?.value, value);
    }),
    { seed: 3, numRuns: 500 },
  );
});

test("a refusal names no value, which may be a secret", () => {
  assert.doesNotMatch(presetValueProblem("threads", "hunter2#") ?? "", /hunter2/);
});
