// What the benchmarks find, each figure beside the one that it must reach.

/** The bounds of a figure that is good. */
export interface Goal {
  readonly least?: number;
  readonly most?: number;
}

export interface Finding {
  readonly row: string;
  readonly figure: string;
  readonly value: number;
  readonly goal: Goal;
  readonly verdict: "reached" | "short";
  /** What the value was made from. */
  readonly measured: Readonly<Record<string, readonly number[]>>;
}

/** Of this run, in their order. `run.ts` writes them where `--json` says. */
export const findings: Finding[] = [];

/** Keeps a finding, and answers with its goal and verdict as text. */
export function judge(
  row: string,
  figure: string,
  value: number,
  goal: Goal,
  measured: Finding["measured"] = {},
): string {
  const { least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY } = goal;
  const verdict = value >= least && value <= most ? "reached" : "short";
  findings.push({ row, figure, value, goal, verdict, measured });
  return `${goal.least === undefined ? `<= ${goal.most}` : `>= ${goal.least}`}: ${verdict}`;
}

/** In their order, and in every second round from the last one: first bytes of what always came second were a tenth later. */
export function inTurn<Each>(all: readonly Each[], round: number): readonly Each[] {
  return round % 2 === 0 ? all : all.toReversed();
}

/** The value that this share of them does not exceed; NaN: there is none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
