// The tables of README.md and docs/ that follow from the source: rendered here, put between `<!-- name -->` and `<!-- /name -->`.
import { presetKinds } from "../../schemas/preset-options.ts";
import { groups } from "../../src/cli/commands.ts";
import { useOf } from "../../src/cli/help.ts";
import { errorCatalog } from "../../src/core/error-catalog.ts";
import type { RouteFamily } from "../../src/http/server/route.ts";
import { type Family, families, prefix } from "../../src/metrics/families.ts";
import { settingRows } from "../../src/settings/settings.ts";
import { sharedVariables } from "../../src/settings/shared.ts";
import { operations } from "../support/operations.ts";
import { conditionTables } from "./condition-tables.ts";

/** Pages by path, with their tables as the source has them. Throws unless each table is on exactly one page. */
export function withTables(pages: ReadonlyMap<string, string>): Map<string, string> {
  const result = new Map(pages);
  for (const [name, table] of Object.entries(tables())) {
    const found = [...result].filter(([, text]) => text.includes(openMark(name)));
    const [page] = found;
    if (!page || found.length > 1) throw new Error(`${found.length} pages have the table ${name}, expected 1`);
    result.set(page[0], replaceBlock(page[1], name, table));
  }
  return result;
}

function tables(): Readonly<Record<string, string>> {
  return {
    commands: commandsTable(),
    settings: settingsTable(),
    "shared-settings": sharedTable(),
    conditions: conditionTables(table),
    metrics: metricsTable(),
    errors: errorsTable(),
    "preset-options": presetTable(),
    "routes-own": routesTable("own"),
    "routes-compat": routesTable("compat"),
    "routes-native": routesTable("native"),
    "routes-llama": routesTable("llama"),
  };
}

function commandsTable(): string {
  const rows = Object.values(groups).flatMap((commands) =>
    Object.entries(commands).map(([name, command]) => [
      code(useOf(name, command)),
      command.summary,
      command.exit ?? "",
    ]),
  );
  return table(["command", "what", "exit code"], rows);
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

function metricsTable(): string {
  const rows = Object.entries<Family>(families).map(([name, { type, labels, help }]) => [
    code(prefix + name),
    type,
    labels.map(code).join(", "),
    help,
  ]);
  return table(["metric", "type", "labels", "meaning"], rows);
}

function errorsTable(): string {
  const rows = Object.entries(errorCatalog).map(([name, { status, reason, reaction, hint }]) => [
    code(name),
    String(status),
    code(reason),
    { retry: "five times", wait: "for ever", stall: "after a change" }[reaction],
    hint,
  ]);
  return table(["code", "HTTP status", "reason in conditions", "retried", "what to do"], rows);
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

function openMark(name: string): string {
  return `<!-- ${name} -->`;
}

function replaceBlock(text: string, name: string, block: string): string {
  const open = openMark(name);
  const start = text.indexOf(open);
  const end = text.indexOf(`<!-- /${name} -->`, start);
  if (end < 0) throw new Error(`the table ${name} has no end mark`);
  return `${text.slice(0, start + open.length)}\n${block}\n${text.slice(end)}`;
}
