// Bytes, times and long lines as people read them.

const units = ["B", "kB", "MB", "GB", "TB"] as const;

/** `999 B`, `12.3 MB`, `4.00 GB`: three digits, decimal units as disks are sold in. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit] ?? ""}`;
}

/** `44s`, `3m 05s`, `2h 10m` */
export function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${twoDigits(whole % 60)}s`;
  return `${Math.floor(whole / 3600)}h ${twoDigits(Math.floor((whole % 3600) / 60))}m`;
}

/** How long ago: `44s`, `3m`, `2h`, `5d`; empty where it is not known. */
export function ageText(since: string | null | undefined, now: number): string {
  if (since === null || since === undefined) return "";
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** `12 ms`, `1.2 s`, `3m 05s` */
export function elapsedText(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : durationText(ms / 1000);
}

/** A value of the document in a line. */
export function valueText(value: unknown): string {
  if (value === undefined || value === null) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
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
