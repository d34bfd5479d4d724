// When a new key expires, as a person writes it. Pure.

const spanMs: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** `30d`, `12h`, `4w` from now, or `2027-01-01` (its first moment in UTC). null: neither, or no time to come. */
export function parseExpiry(text: string, now: number): string | null {
  const [, count, unit] = /^(\d{1,6})([hdw])$/.exec(text) ?? [];
  if (count !== undefined) {
    const time = now + Number(count) * (spanMs[unit ?? ""] ?? 0);
    return time > now && time <= lastTime ? new Date(time).toISOString() : null;
  }
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return null;
  const time = Date.parse(`${text}T00:00:00Z`);
  // The 30th of February would be a day in March.
  if (!(time > now) || !new Date(time).toISOString().startsWith(text)) return null;
  return new Date(time).toISOString();
}

/** Years have four digits in the file. */
const lastTime = Date.UTC(9999, 11, 31);
