// README.md says what the program has: its tables, scripts, commands, reasons and links are compared with the source.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { helpText } from "../../src/cli/help.ts";
import { errorCatalog } from "../../src/core/error-catalog.ts";
import { packageRoot, settingRows } from "../../src/settings/settings.ts";
import { sharedVariables } from "../../src/settings/shared.ts";
import { withTables } from "../checks/readme-tables.ts";
import { readProjectFile } from "../support/project-files.ts";

const readme = readProjectFile("README.md");

test("its tables are current", () => {
  assert.equal(withTables(readme), readme, "run `npm run docs`");
});

test("it lists every error code, and none that does not exist", () => {
  assert.deepEqual(firstColumn("errors").toSorted(), Object.keys(errorCatalog).toSorted());
});

test("it lists every setting, and none that does not exist", () => {
  assert.deepEqual(
    firstColumn("settings"),
    settingRows.map(({ flag }) => `--${flag}`),
  );
  const named = readme.match(/--[a-z]+(?:-[a-z]+)*/g) ?? [];
  const known = new Set<string>([
    ...settingRows.map(({ flag }) => `--${flag}`),
    "--json",
    "--yes",
    "--force",
    "--expires",
    "--scope",
    "--threads",
    // Node's own.
    "--max-semi-space-size",
  ]);
  assert.deepEqual(
    named.filter((flag) => !known.has(flag)),
    [],
  );
  const variables = readme.match(/\b(?:GATEWAY|HF|LLAMA)_[A-Z_]+\b/g) ?? [];
  const shared = sharedVariables.flatMap(({ variable }) => variable.split(", "));
  const readable = new Set<string>([...settingRows.map(({ variable }) => variable), ...shared]);
  assert.deepEqual(
    variables.filter((variable) => !readable.has(variable)),
    [],
  );
});

test("each npm script that it names exists", () => {
  const { scripts } = JSON.parse(readProjectFile("package.json")) as { scripts: Record<string, string> };
  const named = [...readme.matchAll(/npm (?:run )?(start|test|(?<=run )[a-z:]+)/g)].map((match) => match[1] ?? "");
  assert.ok(named.length > 8);
  assert.deepEqual(
    named.filter((name) => !(name in scripts)),
    [],
  );
});

test("it lists the commands of the help text", () => {
  const [, commands = ""] = /Commands:\n([\s\S]*?)\n\n/.exec(helpText()) ?? [];
  const named = [...commands.matchAll(/^ {2}([a-z]+)/gm)].map((match) => match[1] ?? "");
  assert.ok(named.length >= 6);
  for (const name of named) assert.match(readme, new RegExp(`^\\| \`${name}\\b`, "m"));
});

test("its conditions and reasons are those of the source, both ways", () => {
  const conditions = [
    "src/status/conditions.ts",
    "src/status/finding.ts",
    "src/status/requests.ts",
    "src/status/speech.ts",
    "src/status/worker-conditions.ts",
    "src/plan/worker-verdict.ts",
    "src/rpc/worker-watch.ts",
    "src/rpc/worker-target.ts",
    "src/rpc/worker-wire.ts",
  ]
    .map(readProjectFile)
    .join("\n");
  const source = readProjectFile("src/desired/file-source.ts");
  const engine = readProjectFile("src/engines/llama/engine-source.ts") + readProjectFile("src/state/state-folder.ts");
  const literals = [
    ...conditions.matchAll(/"([A-Z][a-z]\w+)"/g),
    ...`${source}${engine}`.matchAll(/reason: (?:\w+ \? "\w+" : )?"([A-Z]\w+)"/g),
    ...source.matchAll(/reason: \w+ \? "([A-Z]\w+)"/g),
  ];
  const used = new Set(literals.map((match) => match[1] ?? ""));
  for (const truth of ["True", "False", "Unknown"]) used.delete(truth);
  const listed = new Set(codeWords("conditions").filter((word) => /^[A-Z][a-z]+[A-Za-z]*$/.test(word)));
  assert.deepEqual([...listed].toSorted(), [...used].toSorted());
});

test("its links to files lead somewhere", () => {
  const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)]
    .map((match) => match[1] ?? "")
    .filter((link) => !link.includes("://"));
  assert.ok(links.length > 3);
  assert.deepEqual(
    links.filter((link) => !existsSync(join(packageRoot, link))),
    [],
  );
});

function blockOf(name: string): string {
  const start = readme.indexOf(`<!-- ${name} -->`);
  const end = readme.indexOf(`<!-- /${name} -->`);
  assert.ok(start >= 0 && end > start, `README.md has no block ${name}`);
  return readme.slice(start, end);
}

function codeWords(name: string): string[] {
  return [...blockOf(name).matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");
}

/** The code words in the first column of a block's table. */
function firstColumn(name: string): string[] {
  const cells = blockOf(name)
    .split("\n")
    .flatMap((line) => /^\| (.*?) \|/.exec(line)?.[1] ?? []);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ""));
}
