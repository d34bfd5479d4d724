// A check and its outcome; which checks there are, in their order. Each has a section of its name in docs/doctor.md. Pure.
import type { Color, Paint } from "../colors.ts";
import { wrapped } from "../text.ts";

/** By id: the category. */
export const checkTable = {
  versions: "program",
  "unit-file": "program",
  "engine-found": "engine",
  "engine-runs": "engine",
  gpu: "engine",
  memory: "machine",
  clock: "machine",
  "open-files": "machine",
  "cache-access": "model cache",
  "cache-disk": "model cache",
  "cache-file-system": "model cache",
  "state-access": "state",
  document: "state",
  "document-mount": "state",
  hub: "hub",
  "hub-token": "hub",
  port: "network",
  exposure: "network",
  "gateway-runs": "running gateway",
  conditions: "running gateway",
  thrashing: "running gateway",
  queue: "running gateway",
  "cold-starts": "running gateway",
  "loaded-memory": "running gateway",
  "failed-loads": "running gateway",
  workers: "running gateway",
} as const;

export type CheckId = keyof typeof checkTable;

/** `unknown`: it could not be found out. */
export type CheckResult = "ok" | "warning" | "failed" | "unknown";

export interface Check {
  readonly category: (typeof checkTable)[CheckId];
  readonly id: CheckId;
  readonly result: CheckResult;
  readonly evidence: string;
  readonly remedy: string | null;
  /** The page about it. */
  readonly page: string;
}

const checkOf =
  (result: CheckResult) =>
  (id: CheckId, evidence: string, remedy: string | null = null): Check => ({
    category: checkTable[id],
    id,
    result,
    evidence,
    remedy,
    page: `docs/doctor.md#${id}`,
  });

export const ok = checkOf("ok");
export const warning = checkOf("warning");
export const failed = checkOf("failed");
export const unknown = checkOf("unknown");

const signs: Readonly<Record<CheckResult, readonly [sign: string, color: Color]>> = {
  ok: ["√", "green"],
  warning: ["‼", "yellow"],
  failed: ["×", "red"],
  unknown: ["?", "dim"],
};

/** As a person reads them, category by category. */
export function checkLines(checks: readonly Check[], paint: Paint, columns: number | undefined): string[] {
  const lines: string[] = [];
  let category = "";
  for (const check of checks) {
    if (check.category !== category) {
      category = check.category;
      lines.push(...(lines.length > 0 ? [""] : []), paint("bold", category), "-".repeat(category.length));
    }
    const [sign, color] = signs[check.result];
    lines.push(`${paint(color, sign)} ${wrapped(`${check.id}: ${check.evidence}`, columns && columns - 2, "    ")}`);
    if (check.remedy !== null) lines.push(`    ${wrapped(check.remedy, columns && columns - 4, "    ")}`);
    if (check.result !== "ok") lines.push(paint("dim", `    see ${check.page}`));
  }
  const count = (result: CheckResult): number => checks.filter((check) => check.result === result).length;
  const [wrong, warned] = [count("failed"), count("warning")];
  const summary = wrong > 0 ? `${wrong} of ${checks.length} checks failed` : `No check of ${checks.length} failed`;
  return [...lines, "", paint(wrong > 0 ? "red" : "green", `${summary}${warned > 0 ? `, ${warned} warn` : ""}.`)];
}
