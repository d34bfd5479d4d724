// Operands and flags that a command does not take are errors, whatever the command.
import assert from "node:assert/strict";
import { test } from "node:test";
import { commandOf } from "../../../src/cli/commands.ts";
import { readSettings, settingRows } from "../../../src/settings/settings.ts";

function check(...args: readonly string[]): void {
  commandOf(readSettings(args, { HOME: "/nowhere" }));
}

for (const args of [
  [],
  ["-h"],
  ["help"],
  ["help", "key", "create"],
  ["version"],
  ["--version"],
  ["plan", "--state", "s", "--config", "c", "--port", "1", "--json"],
  ["serve", "--queue-limit", "3", "--config", "c"],
  ["validate", "good.yaml"],
  ["validate", "good.yaml", "better.yaml", "-", "--json"],
  ["validate", "-h"],
  ["diff", "-f", "-", "--json"],
  ["apply", "-f", "x.yaml", "--wait", "--timeout", "5", "--revision", "3f2a"],
  ["wait", "--for", "model=acme/a:Q8_0", "--generation", "3"],
  ["--state", "s", "logs", "acme/a:Q8_0", "-f", "--tail", "5"],
  ["status", "--watch"],
  ["rm", "acme/a:Q8_0", "--yes", "--json"],
  ["history"],
  ["history", "12", "--json"],
  ["rollback", "12", "--force"],
  ["reset"],
  ["reset", "context.default", "models.acme/a:Q8_0", "rpc", "--json"],
  ["export", "--state", "s", "--config", "c"],
  ["serve", "--write-back", "--writes", "all"],
  ["engine", "install"],
  ["engine", "install", "whisper", "--state", "s"],
  ["key", "create", "laptop", "--expires", "30d"],
  ["worker", "--host", "0.0.0.0", "--threads", "2", "--rpc-server", "r"],
])
  test(`taken: ${args.join(" ") || "nothing"}`, () => check(...args));

for (const [args, message] of [
  [["validate"], /^validate needs FILE; /],
  [["validate", "good.yaml", "--yes"], /^validate does not take --yes, which is for rm, gc; /],
  [["plan", "--follow"], /^plan does not take --follow, which is for logs; /],
  [["logs", "--file", "x"], /^logs does not take --file, which is for /],
  [["status", "-f", "x"], /^status does not take --file, which is for /],
  [["serve", "--json"], /^serve does not take --json, which is for models, show, /],
  [["plan", "now"], /^plan does not take "now"; /],
  [["plan", "--queue-limit", "3"], /^plan does not take --queue-limit, which is for serve, package; /],
  [
    ["status", "--config", "c"],
    /^status does not take --config, which is for plan, import ollama, import llama-swap, export, /,
  ],
  [["serve", "now"], /^serve does not take "now"; /],
  [["serve", "--yes"], /^serve does not take --yes, which is for rm, gc; /],
  [["serve", "--version"], /^serve does not take --version, which is for version; /],
  [["rm"], /^rm needs ID; /],
  [["rollback"], /^rollback needs N; /],
  [["history", "1", "2"], /^history does not take "2"; /],
  [["rm", "a", "b"], /^rm does not take "b"; /],
  [["key", "create", "a", "b"], /^key create does not take "b"; /],
  [["key", "create"], /^key create needs NAME; /],
  [["key", "list", "a"], /^key list does not take "a"; /],
  [["key", "revoke", "a", "--expires", "1d"], /^key revoke does not take --expires, which is for key create; /],
  [["key", "revoke", "a", "--scope", "chat"], /^key revoke does not take --scope, which is for key create; /],
  [["key", "make", "a"], /^key needs one of create, list, revoke; /],
  [["key"], /^key needs one of create, list, revoke; /],
  [["engine"], /^engine needs one of install; /],
  [["make", "it"], /^there is no command make it; /],
  [["version", "--port", "1"], /^version does not take --port, /],
  [["help", "--json"], /^help does not take --json, /],
  [["--port", "1"], /^--port needs a command, such as serve; /],
  [["constructor"], /^there is no command constructor; /],
] as const)
  test(`refused: ${args.join(" ")}`, () => assert.throws(() => check(...args), { code: "invalid_request", message }));

test("every setting is one of serve's", () => {
  for (const { flag } of settingRows)
    assert.doesNotThrow(() => commandOf({ ...readSettings(["serve"], {}), flags: [flag] }));
});
