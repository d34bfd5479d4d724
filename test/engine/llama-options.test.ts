// Every option of the installed engine has a reviewed verdict: llama-options.txt lists them, so that those of a new engine are
// seen. One that stands in no list of the program's is denied, here too.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { presetKinds } from "../../schemas/preset-options.ts";
import { parseHelp } from "../../src/engines/llama/engine-source.ts";
import { llamaServer } from "../support/engine.ts";
import { presetVerdict } from "../support/preset-verdict.ts";
import { readProjectFile } from "../support/project-files.ts";

const help = async (): Promise<string> => (await promisify(execFile)(await llamaServer(), ["--help"])).stdout;
const lineOf = (option: string): string => `${option} ${presetVerdict(option)}`;

test("each option stands in llama-options.txt with its verdict", async () => {
  const listed = readProjectFile("test/engine/llama-options.txt").trimEnd().split("\n");
  assert.deepEqual(
    listed.map((line) => line.split(" ")[0] ?? "").map(lineOf),
    listed,
    "the file has verdicts that are no longer so",
  );
  const options = [...(parseHelp(await help()) ?? [])].filter((option) => !option.startsWith("LLAMA_"));
  assert.ok(options.length > 300);
  const unseen = options.map(lineOf).filter((line) => !listed.includes(line));
  assert.deepEqual(
    unseen.toSorted(),
    [],
    "the installed engine has options without a reviewed verdict: add these lines",
  );
});

test("what the help text says to take a path, address, repository, tool or token is allowed in no spelling", async () => {
  const kinds = Object.keys(presetKinds);
  const naming =
    /\b(?:FNAME|FILE|PATH|DIR|\w*URL|HOST|SERVERS|JINJA_TEMPLATE_FILE|TOOL1|TOKEN|KEY|PREFIX)\b(?!=)|<user>|<repo>/;
  const lines = (await help()).split("\n").filter((line) => line.startsWith("-") && naming.test(line.slice(0, 100)));
  assert.ok(lines.length > 25, `${lines.length}`);
  for (const line of lines)
    for (const [, option = ""] of line.matchAll(/(?:^|,\s*)--?([A-Za-z][A-Za-z0-9-]*)/g))
      assert.ok(!kinds.includes(presetVerdict(option)), line);
});

test("the variables that stand for options are allowed in no case", async () => {
  const variables = [...(parseHelp(await help()) ?? [])].filter((option) => option.startsWith("LLAMA_"));
  assert.ok(variables.length > 100);
  for (const variable of variables)
    for (const spelling of [variable, variable.toLowerCase()])
      assert.ok(!Object.keys(presetKinds).includes(presetVerdict(spelling)), spelling);
});
