// A systemd unit of the gateway: whether a stop is given its time. Pure.

export interface UnitFile {
  readonly path: string;
  readonly text: string;
}

/** What to change; null: nothing. */
export function unitProblem({ text }: UnitFile, stopGraceMs: number): string | null {
  const last = (key: string): string | undefined =>
    [...text.matchAll(new RegExp(`^\\s*${key}\\s*=\\s*(.*?)\\s*$`, "gm"))].at(-1)?.[1];
  const killMode = last("KillMode") ?? "control-group";
  if (killMode !== "mixed") return `KillMode is ${killMode}: set mixed, or engines are ended before their responses`;
  const stop = seconds(last("TimeoutStopSec") ?? last("TimeoutSec") ?? "90");
  return stop !== null && stop * 1000 <= stopGraceMs
    ? `TimeoutStopSec is ${stop} s: set more than --stop-grace (${stopGraceMs / 1000} s)`
    : null;
}

const units: Readonly<Record<string, number>> = { ms: 0.001, s: 1, sec: 1, min: 60, m: 60, h: 3600 };

/** Of a span such as `1min 30s`; null: none, or for ever. */
function seconds(span: string): number | null {
  if (!/^(?:\d+\s*[a-z]*\s*)+$/.test(span) || span === "0") return null;
  const parts = [...span.matchAll(/(\d+)\s*([a-z]*)/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (units[unit || "s"] ?? 1), 0);
}
