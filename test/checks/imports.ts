// Checks the import rules of .dependency-cruiser.cjs. Why not its own command line: when it cannot read TypeScript it sees
// no module and calls that clean, so the number of modules has a floor here.
import { relative } from "node:path";
import { cruise, type ICruiseResult } from "dependency-cruiser";
import extractOptions from "dependency-cruiser/config-utl/extract-depcruise-options";
import { packageRoot } from "../../src/settings/settings.ts";

const fewestModules = 80;

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
