// The tables of conditions in the docs, from the tables that the gateway reports them by.
import { type ConditionType, conditionTable } from "../../src/status/condition-table.ts";

const conditions: readonly (readonly [string, ConditionType])[] = Object.entries(conditionTable);

const scopes: readonly (readonly [title: string, scopes: readonly ConditionType["scope"][]])[] = [
  ["Of the gateway:", ["gateway", "speech"]],
  ["Of each model:", ["model"]],
  ["Of each RPC worker:", ["worker"]],
];

export function conditionTables(table: (head: readonly string[], rows: readonly string[][]) => string): string {
  const negative = conditions.filter(([, { polarity }]) => polarity === "negative").map(([type]) => `\`${type}\``);
  const notes = conditions.flatMap(([type, { only }]) =>
    only === undefined ? [] : [`\`${type}\` is reported ${only}.`],
  );
  const parts = scopes.flatMap(([title, own]) => [
    title,
    table(
      ["condition", "status", "reason", "meaning", "what to do"],
      conditions.filter(([, { scope }]) => own.includes(scope)).flatMap(rowsOf),
    ),
  ]);
  return [`True is the normal status; of ${negative.join(" and ")} it is False. ${notes.join(" ")}`, ...parts].join(
    "\n\n",
  );
}

function rowsOf([key, { type = key, reasons, alsoFrom }]: readonly [string, ConditionType]): string[][] {
  const name = `\`${type}\``;
  const rows = Object.entries(reasons).map(([reason, { status, meaning, remedy }]) => [
    name,
    status,
    `\`${reason}\``,
    meaning,
    remedy ?? "",
  ]);
  return alsoFrom === undefined ? rows : [...rows, [name, "", alsoFrom, "The message has the cause.", ""]];
}
