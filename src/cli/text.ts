// Values and long lines as people read them.
import type { Desired } from "../client/index.ts";

export { ageText, bytesText, durationText, elapsedText } from "../core/quantities.ts";

/** A value of the document in a line. */
export function valueText(value: unknown): string {
  if (value === undefined || value === null) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Lines of at most so many columns, but for longer words; further lines are indented. Without columns: as it is. */
export function wrapped(text: string, columns: number | undefined, indent = ""): string {
  if (columns === undefined || columns <= indent.length) return text;
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line += line === "" ? word : ` ${word}`;
  }
  return [...lines, line].join("\n");
}

/** The exit code of a command that is done then. */
export function printJson(value: unknown): number {
  console.log(JSON.stringify(value, null, 2));
  return 0;
}

/** What a person wrote is not in force: an error, whatever else the command has printed. */
export function printProblem(message: string): number {
  console.error(`model-gateway: ${message}`);
  return 1;
}

/** The exit code of a change, with what of the document cannot be had. */
export function printOutcomeOf({ converged, findings = {} }: Pick<Desired, "converged" | "findings">): number {
  if (converged !== false) return 0;
  for (const [id, problem] of Object.entries(findings)) console.error(`${id}: ${problem}`);
  return 1;
}

/** In columns, two blanks apart. */
export function tableLines(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

export function printTable(rows: readonly (readonly string[])[]): void {
  for (const line of tableLines(rows)) console.log(line);
}
