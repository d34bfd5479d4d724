// Samples in the text form that Prometheus reads. Pure. With 200 models that were all asked `prom-client` held the event loop for 20 ms
// to make the same text, and its first load took 60 ms and 10 MB.
import { type Family, type FamilyName, families, prefix } from "./families.ts";

export interface Sample {
  readonly value: number;
  /** As {@link labelText} makes it; empty: none. */
  readonly labels: string;
  /** After the family's name. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
}

export type Samples = Readonly<Record<FamilyName, readonly Sample[]>>;

export const contentType = "text/plain; version=0.0.4; charset=utf-8";

export function metricsText(samples: Samples): string {
  return Object.entries(samples)
    .map(([name, values]) => familyText(prefix + name, families[name as FamilyName], values))
    .join("");
}

/** Nothing for a family without a sample: a reader that takes the first sample finds one. */
export function familyText(full: string, { type, help }: Family, samples: readonly Sample[]): string {
  if (samples.length === 0) return "";
  let text = `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n`;
  for (const { value, labels, suffix = "" } of samples)
    text += labels === "" ? `${full}${suffix} ${value}\n` : `${full}${suffix}{${labels}} ${value}\n`;
  return text;
}

/** Backslash, quote and line feed are escaped in a value, as in JSON. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(",");
}
