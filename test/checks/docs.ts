// `npm run docs`: writes the generated tables of README.md and docs/; with `--check` it only reports stale ones.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/settings/settings.ts";
import { docPages } from "../support/doc-pages.ts";
import { withTables } from "./doc-tables.ts";

const before = docPages();
for (const [path, text] of withTables(before)) {
  if (text === before.get(path)) continue;
  if (process.argv.includes("--check")) {
    console.error(`the tables of ${path} are stale: run \`npm run docs\``);
    process.exitCode = 1;
  } else {
    writeFileSync(join(packageRoot, path), text);
  }
}
