// The completion script of bash, in the real bash.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { shellScript } from "../../../src/cli/completion.ts";

function completed(line: string): string[] {
  const script = [
    'model-gateway() { printf "%s\\n" "$# words" local/a:Q4_0 local/a:Q8_0; }',
    shellScript("bash"),
    'COMP_LINE=$1 COMP_POINT=${#1}; _model_gateway; printf "%s\\n" "${COMPREPLY[@]}"',
  ];
  const output = execFileSync("bash", ["--norc", "-c", script.join("\n"), "bash", line], { encoding: "utf8" });
  return output.split("\n").filter((word) => word !== "");
}

test("bash gets the words that begin with what is typed, from its last colon on", () => {
  assert.deepEqual(completed("model-gateway show "), ["5 words", "local/a:Q4_0", "local/a:Q8_0"]);
  assert.deepEqual(completed("model-gateway show loc"), ["local/a:Q4_0", "local/a:Q8_0"]);
  assert.deepEqual(completed("model-gateway show local/a:"), ["Q4_0", "Q8_0"]);
  assert.deepEqual(completed("model-gateway show local/a:Q8"), ["Q8_0"]);
  assert.deepEqual(completed("model-gateway show other"), []);
});
