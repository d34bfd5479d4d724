// Writes gateway.schema.json, which editors read, from its source; `--check` only reports whether it is current.
import { readFileSync, writeFileSync } from "node:fs";
import { documentSchema } from "./document.ts";

const path = "schemas/gateway.schema.json";
const text = `${JSON.stringify(documentSchema, null, 2)}\n`;

if (!process.argv.includes("--check")) {
  writeFileSync(path, text);
} else if (readFileSync(path, "utf8") !== text) {
  console.error(`${path} is not current: run \`npm run schemas\``);
  process.exitCode = 1;
}
