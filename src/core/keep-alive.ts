// How long an idle model stays loaded, in the forms that Ollama's clients write it. Pure.

/** How long the model stays loaded after the answer; `seconds: 0` is not at all. */
export type KeepAlive =
  | { readonly kind: "default" }
  | { readonly kind: "seconds"; readonly seconds: number }
  | { readonly kind: "forever" };

/** As a person writes it, seconds also as text. ms; Infinity: for ever; null: it is none. */
export function keepAliveMs(value: string | number): number | null {
  const isNumber = typeof value === "string" && /^-?[\d.]+$/.test(value);
  const keepAlive = parseKeepAlive(isNumber ? Number(value) : value);
  if (keepAlive === null || keepAlive.kind === "default") return null;
  return keepAlive.kind === "forever" ? Number.POSITIVE_INFINITY : keepAlive.seconds * 1000;
}

const unitSeconds: Record<string, number> = { ns: 1e-9, us: 1e-6, µs: 1e-6, μs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };
const durationPattern = /^[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/;

/** Ollama's `keep_alive`: seconds as a number, or a Go duration ("5m", "1h30m"); negative is for ever. null: neither. */
export function parseKeepAlive(value: unknown): KeepAlive | null {
  if (value === undefined || value === null) return { kind: "default" };
  let seconds = value;
  if (typeof value === "string") {
    if (!durationPattern.test(value) && !/^[+-]?0$/.test(value)) return null;
    let total = 0;
    for (const [, count, unit] of value.matchAll(/([\d.]+)([^\d.]+)/g))
      total += Number(count) * (unitSeconds[unit ?? ""] ?? 0);
    seconds = value.startsWith("-") ? -total : total;
  }
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) return null;
  return seconds < 0 ? { kind: "forever" } : { kind: "seconds", seconds: Math.abs(seconds) };
}
