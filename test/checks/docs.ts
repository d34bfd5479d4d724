// `npm run docs`: writes the tables of README.md anew; with `--check` it only says whether they are current.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/settings/settings.ts";
import { withTables } from "./readme-tables.ts";

const path = join(packageRoot, "README.md");
const before = readFileSync(path, "utf8");
const after = withTables(before);

if (!process.argv.includes("--check")) {
  writeFileSync(path, after);
} else if (after !== before) {
  console.error("the tables of README.md are not current: run `npm run docs`");
  process.exitCode = 1;
}
