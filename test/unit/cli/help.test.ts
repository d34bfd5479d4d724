// Help and completion follow from the table of commands.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { commandOf, groups } from "../../../src/cli/commands.ts";
import { nextWords, shellScript } from "../../../src/cli/completion.ts";
import { helpOf, helpText } from "../../../src/cli/help.ts";
import type { Commands } from "../../../src/cli/table/command.ts";
import { readSettings } from "../../../src/settings/settings.ts";

const commands = Object.assign({}, ...Object.values(groups)) as Commands;

for (const [name, command] of Object.entries(commands))
  test(`help of ${name}: at most 30 lines of 80 characters, two examples that the command takes`, () => {
    const lines = helpOf(name, commands).split("\n");
    assert.ok(lines.length <= 30, `${lines.length} lines`);
    assert.deepEqual(
      lines.filter((line) => line.length > 80 && !line.startsWith("  model-gateway ")),
      [],
    );
    for (const example of command.examples) {
      const [line = ""] = example.split(/ [|<>] /);
      const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
      const taken = commandOf(readSettings(words, { HOME: "/nowhere" }));
      assert.equal(taken.name, name);
    }
  });

for (const [name, below] of [
  ["key", ["key create NAME", "key list", "key revoke NAME"]],
  ["import", ["import ollama [FOLDER]", "import llama-swap FILE"]],
  ["rpc", ["rpc mode single|rpc", "rpc add HOST:PORT…", "rpc remove HOST:PORT…"]],
] as const)
  test(`help of ${name} has the commands that begin so`, () => {
    assert.equal(commandOf(readSettings([name, "--help"], {})).name, name);
    const [, rows = ""] = /^Commands:\n((?: .*\n?)+)/m.exec(helpOf(name, commands)) ?? [];
    const starts = rows.split("\n").filter((row) => /^ {2}\S/.test(row));
    assert.deepEqual(
      starts.map((row, at) => row.slice(2, 2 + (below[at]?.length ?? 0))),
      below,
    );
  });

test("the list has every command", () => {
  const text = helpText(groups);
  for (const name of Object.keys(commands)) assert.match(text, new RegExp(`^  ${name}\\b`, "m"));
});

for (const [words, expected, models = false] of [
  [["st"], ["status"]],
  [
    ["key", ""],
    ["create", "list", "revoke"],
  ],
  [["key", "create", "--sc"], ["--scope"]],
  [
    ["rpc", "mode", ""],
    ["rpc", "single"],
  ],
  [["engine", "install", "w"], ["whisper"]],
  [
    ["completion", ""],
    ["bash", "fish", "zsh"],
  ],
  [["help", "key", "l"], ["list"]],
  [
    ["import", ""],
    ["llama-swap", "ollama"],
  ],
  [["run", "acme"], [], true],
  [["--port", "9000", "run", "acme"], [], true],
  [["run", "acme/alpha:Q8_0", "hi"], []],
  [["logs", "-f", ""], [], true],
  [["wait", "--for", "s"], ["synced"]],
  [["plan", "-f", ""], []],
  [["apply", "--timeout", ""], []],
  [["nothing", "--"], ["--help"]],
  [["constructor", ""], []],
] as const)
  test(`completion of ${words.join(" ")}`, () =>
    assert.deepEqual(nextWords(words, commands), { words: expected, models }));

test("bash takes its script, and completes with it", () => {
  const script = `model-gateway() { printf '%s\\n' status stop; }
${shellScript("bash")}
COMP_WORDS=(model-gateway st) COMP_CWORD=1; _model_gateway; echo "\${COMPREPLY[@]}"`;
  assert.equal(execFileSync("bash", ["-c", script], { encoding: "utf8" }), "status stop\n");
});
