// README.md, docs/ and the notes beside the code match the source: tables, scripts, commands, reasons, links, paths.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { commandFlags, packageRoot, settingRows } from "../../src/settings/settings.ts";
import { sharedVariables } from "../../src/settings/shared.ts";
import { withTables } from "../checks/doc-tables.ts";
import { docPages } from "../support/doc-pages.ts";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

const pages = docPages();
const readme = readProjectFile("README.md");
const docs = [...pages.values()].join("\n");

test("generated tables are current", () => {
  assert.deepEqual(withTables(pages), pages, "run `npm run docs`");
});

test("README.md is short and lists every page", () => {
  assert.ok(readme.split("\n").length <= 251);
  const listed = [...readme.matchAll(/^\| \[[a-z-]+\]\((docs\/[a-z-]+\.md)\)/gm)].map((match) => match[1]);
  assert.deepEqual(["README.md", ...listed].toSorted(), [...pages.keys()].toSorted());
});

test("every flag and variable that a page names exists", () => {
  const known = new Set<string>([
    ...settingRows.map(({ flag }) => `--${flag}`),
    ...Object.keys(commandFlags).map((flag) => `--${flag}`),
    // llama-server's own.
    "--list-devices",
    ..."--alias --ctx-size --mmproj --lora --chat-template-file --temp --log-file".split(" "),
    // curl's own.
    "--data-binary",
    // Docker's, kubectl's, npm's, systemctl's own.
    ..."--build-arg --from-file --global --now --overwrite --profile --rm".split(" "),
    // The llm-d router's own.
    ..."--config-file --pool-name --pool-namespace --secure-serving".split(" "),
    // Node's own.
    "--max-semi-space-size",
    "--v8-pool-size",
    "--enable-source-maps",
    "--optimize-for-size",
    "--heap-growing-percent",
  ]);
  const named = docs.match(/(?<![\w-])--[a-z]+\d*(?:-[a-z]+)*/g) ?? [];
  assert.deepEqual(
    named.filter((flag) => !known.has(flag)),
    [],
  );
  const variables = docs.match(/\b(?:GATEWAY|HF|LLAMA)_[A-Z_]+\b/g) ?? [];
  const shared = sharedVariables.flatMap(({ variable }) => variable.split(", "));
  // The last one is llama-server's own.
  const readable = new Set<string>([...settingRows.map(({ variable }) => variable), ...shared, "LLAMA_ARG_FIT"]);
  assert.deepEqual(
    variables.filter((variable) => !readable.has(variable)),
    [],
  );
});

test("every npm script that a page names exists", () => {
  const { scripts } = JSON.parse(readProjectFile("package.json")) as { scripts: Record<string, string> };
  const text = docs + readProjectFile("CONTRIBUTING.md");
  const named = [...text.matchAll(/npm (?:run )?(start|test|(?<=run )[a-z:]+)/g)].map((match) => match[1] ?? "");
  assert.ok(named.length > 8);
  assert.deepEqual(
    named.filter((name) => !(name in scripts)),
    [],
  );
});

test("the rooms of docs/architecture.md are the folders that the import rules know, in their order", () => {
  const [, table = ""] = /const purity = \{([\s\S]*?)\};/.exec(readProjectFile(".dependency-cruiser.cjs")) ?? [];
  const rooms = [...table.matchAll(/^ {2}"?([\w/]+)"?: (true|false),$/gm)];
  assert.ok(rooms.length > 40);
  assert.deepEqual(
    firstColumn("rooms"),
    rooms.map(([, room]) => room),
  );
  const pure = [...blockOf("rooms").matchAll(/^\| `([^`]+)` .*\| pure \|$/gm)].map((match) => match[1]);
  assert.deepEqual(
    pure,
    rooms.flatMap(([, room, isPure]) => (isPure === "true" ? [room] : [])),
  );
});

test("every package in the program has its reason in docs/architecture.md", () => {
  const [, table = ""] = /const packages = \{([\s\S]*?)\};/.exec(readProjectFile(".dependency-cruiser.cjs")) ?? [];
  const packages = [...table.matchAll(/^ {2}"?([@\w/-]+)"?: "/gm)].map(([, name]) => name);
  assert.ok(packages.length > 8);
  assert.deepEqual(firstColumn("dependencies"), packages);
});

const written = projectFiles().filter((path) => path.endsWith(".md"));

test("links lead to a file, and to a heading of it", () => {
  const links = written.flatMap((page) =>
    [...readProjectFile(page).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => ({ page, link: match[1] ?? "" })),
  );
  assert.ok(links.length > 40);
  const broken = links.filter(({ page, link }) => !link.includes("://") && !leadsSomewhere(page, link));
  assert.deepEqual(broken, []);
});

test("source files that a page names exist", () => {
  const files = projectFiles();
  const named = written
    .filter((page) => page !== "CHANGELOG.md")
    .flatMap((page) =>
      [...readProjectFile(page).matchAll(/`([\w./-]+\.(?:ts|cjs))`/g)].map((match) => ({ page, path: match[1] ?? "" })),
    );
  assert.ok(named.length > 60);
  // A note beside the code names the files of its room by their bare names.
  const exists = (page: string, path: string): boolean =>
    files.includes(path) || files.some((file) => file.startsWith(`${dirname(page)}/`) && file.endsWith(`/${path}`));
  assert.deepEqual(
    named.filter(({ page, path }) => !exists(page, path)),
    [],
  );
});

function leadsSomewhere(page: string, link: string): boolean {
  const [file = "", heading] = link.split("#");
  const path = file === "" ? page : normalize(join(dirname(page), file));
  if (!existsSync(join(packageRoot, path))) return false;
  return heading === undefined || headingsOf(readProjectFile(path)).includes(heading);
}

/** As GitHub makes anchors of headings. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map((match) =>
    (match[1] ?? "")
      .toLowerCase()
      .replace(/[^\w\s-]/g, "")
      .replaceAll(" ", "-"),
  );
}

function blockOf(name: string): string {
  const [, block] = new RegExp(`<!-- ${name} -->([\\s\\S]*?)<!-- /${name} -->`).exec(docs) ?? [];
  assert.ok(block !== undefined, `no page has the table ${name}`);
  return block;
}

/** The code words in the first column of a table. */
function firstColumn(name: string): string[] {
  return [...blockOf(name).matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1] ?? "");
}
