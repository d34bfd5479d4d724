// The tables of README.md that follow from the source: rendered here, put between `<!-- name -->` and `<!-- /name -->`.
import { presetKinds } from "../../schemas/preset-options.ts";
import { errorCatalog } from "../../src/core/error-catalog.ts";
import type { RouteFamily } from "../../src/http/server/route.ts";
import { settingRows } from "../../src/settings/settings.ts";
import { sharedVariables } from "../../src/settings/shared.ts";
import { operations } from "../support/operations.ts";

/** The README with its tables as the source has them. Throws where a mark is missing. */
export function withTables(readme: string): string {
  return Object.entries(tables()).reduce((text, [name, table]) => replaceBlock(text, name, table), readme);
}

function tables(): Readonly<Record<string, string>> {
  return {
    settings: settingsTable(),
    "shared-settings": sharedTable(),
    errors: errorsTable(),
    "preset-options": presetTable(),
    "routes-own": routesTable("own"),
    "routes-compat": routesTable("compat"),
    "routes-native": routesTable("native"),
    "routes-llama": routesTable("llama"),
  };
}

function settingsTable(): string {
  const rows = settingRows.map(({ flag, variable, default: fallback, help }) => [
    code(`--${flag}`),
    code(variable),
    fallback === "" ? "" : code(fallback),
    help,
  ]);
  return table(["flag", "variable", "default", "meaning"], rows);
}

function sharedTable(): string {
  const rows = sharedVariables.map(({ variable, fallback, meaning }) => [
    variable.split(", ").map(code).join(", "),
    code(fallback),
    meaning,
  ]);
  return table(["variable", "default", "meaning"], rows);
}

function routesTable(wanted: RouteFamily): string {
  const needs = { required: "", short: "short without", none: "not needed" };
  const rows = operations
    .filter(({ family }) => family === wanted)
    .map(({ method, path, summary, key, scope }) => [
      code(`${method} ${path}`),
      summary,
      scope ? code(scope) : needs[key],
    ]);
  const keyed = rows.some(([, , key]) => key !== "");
  const head = ["route", "what", "license key"];
  return keyed
    ? table(head, rows)
    : table(
        head.slice(0, 2),
        rows.map((row) => row.slice(0, 2)),
      );
}

function errorsTable(): string {
  const rows = Object.entries(errorCatalog).map(([name, { status, reason, reaction, hint }]) => [
    code(name),
    String(status),
    code(reason),
    { retry: "five times", wait: "for ever", stall: "after a change" }[reaction],
    hint,
  ]);
  return table(["code", "HTTP status", "reason in conditions", "tried again", "what to do"], rows);
}

function presetTable(): string {
  const rows = Object.entries(presetKinds).map(([kind, options]) => [kind, options.map(code).join(", ")]);
  return table(["kind", "options"], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function code(text: string): string {
  return `\`${text}\``;
}

function replaceBlock(text: string, name: string, block: string): string {
  const open = `<!-- ${name} -->`;
  const close = `<!-- /${name} -->`;
  const start = text.indexOf(open);
  const end = text.indexOf(close, start);
  if (start < 0 || end < 0) throw new Error(`README.md has no block ${open} … ${close}`);
  return `${text.slice(0, start + open.length)}\n${block}\n${text.slice(end)}`;
}
