// Bytes and times as people read them. Pure.

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

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

export interface TransferStep {
  /** Bytes of the whole. */
  readonly completed: number;
  readonly total: number;
  readonly bytesPerSecond?: number | undefined;
  readonly secondsLeft?: number | null | undefined;
}

/** Bytes, rate and time left, for a person. */
export function amounts({ completed, total, bytesPerSecond = 0, secondsLeft = null }: TransferStep): string {
  const rate = bytesPerSecond > 0 ? ` ${bytesText(bytesPerSecond)}/s` : "";
  const left = secondsLeft !== null && secondsLeft > 0 ? ` ${durationText(secondsLeft)} left` : "";
  return `${bytesText(completed)} of ${bytesText(total)}${rate}${left}`;
}
