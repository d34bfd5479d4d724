// Checks the import rules of .dependency-cruiser.cjs. Why not its own command line: when it cannot read TypeScript it sees
// no module and calls that clean, so the number of modules has a floor here.
import { createRequire } from "node:module";
import { relative } from "node:path";
import type { ICruiseResult } from "dependency-cruiser";
import { packageRoot } from "../../src/settings/settings.ts";

const fewestModules = 80;

// dependency-cruiser reads all as TypeScript without JSX (its own note: "TODO: {tj}sx ?"), and stops at the page's files.
const swc = createRequire(import.meta.url)("@swc/core") as { parseFileSync: (path: string, options: object) => object };
const { parseFileSync } = swc;
swc.parseFileSync = (path, options) => parseFileSync(path, { ...options, tsx: path.endsWith(".tsx") });
// Not before that: an import takes the functions as they are then.
const { cruise } = await import("dependency-cruiser");
const { default: extractOptions } = await import("dependency-cruiser/config-utl/extract-depcruise-options");

process.chdir(packageRoot);
const options = await extractOptions("./.dependency-cruiser.cjs");
const { output } = await cruise(["src", "schemas", "test"], options);
if (typeof output === "string") throw new Error("dependency-cruiser answered with text instead of its findings");
report(output);

function report({ summary, modules }: ICruiseResult): void {
  const own = modules.filter(({ source }) => /^(src|schemas|test)\//.test(source));
  for (const { rule, from, to } of summary.violations) {
    const comment = summary.ruleSetUsed?.forbidden?.find((known) => known.name === rule.name)?.comment;
    console.error(`${from} -> ${to}\n    ${rule.name}${comment === undefined ? "" : `: ${comment}`}`);
  }
  const edges = own.reduce((sum, module) => sum + module.dependencies.length, 0);
  console.log(`${own.length} modules, ${edges} imports, ${summary.violations.length} against the rules`);
  if (summary.violations.length > 0) process.exitCode = 1;
  if (own.length >= fewestModules) return;
  console.error(`only ${own.length} modules were seen in ${relative("..", packageRoot)}: the check is blind`);
  process.exitCode = 1;
}
