// What becomes of a tool of the engine that fails: whose fault it is decides whether its model counts as refused.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { GatewayError } from "../../../../src/core/errors.ts";
import { runEngineTool } from "../../../../src/engines/llama/tool.ts";
import { scratchFolder } from "../../../support/scratch.ts";

const cases: readonly [what: string, script: string, code: string, message: RegExp][] = [
  ["its complaint about the model", "echo '0.1 E load: bad type' >&2; exit 134", "engine_refused", /^load: bad type$/],
  [
    "an option that it lacks",
    "echo 'error: invalid argument: --x' >&2; exit 1",
    "engine_failed",
    /exited with code 1: .*--x/,
  ],
  ["a lack of memory", "echo '0.1 E alloc failed' >&2; exit 1", "engine_failed", /alloc failed/],
  ["an end without a word", "exit 3", "engine_failed", /exited with code 3/],
  ["a hang", "sleep 60", "engine_failed", /took more than 300 ms/],
];

for (const [what, script, code, message] of cases)
  test(`a tool that fails: ${what}`, async (t) => {
    const stateDir = await scratchFolder(t);
    const path = join(stateDir, "tool");
    await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const signal = new AbortController().signal;
    const timeoutMs = what === "a hang" ? 300 : 60_000;
    const ran = runEngineTool(path, [], { stateDir, environment: process.env, signal, timeoutMs });
    await assert.rejects(
      ran,
      (error) => error instanceof GatewayError && error.code === code && message.test(error.message),
    );
  });
