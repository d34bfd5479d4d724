// The metrics as text. prom-client writes it: of the package only the registry is loaded, at the first scrape, as its index would take
// 60 ms and 10 MB for collectors that are not used here.
import { createRequire } from "node:module";
import type { Gauge, Registry as PromRegistry } from "prom-client";
import { type Family, type FamilyName, families, prefix } from "../../metrics/families.ts";
import type { Sample, Samples } from "../../metrics/samples.ts";

const require = createRequire(import.meta.url);

export function metricsText(samples: Samples): Promise<string> {
  const Registry = require("prom-client/lib/registry.js") as typeof PromRegistry;
  const registry = new Registry();
  for (const [name, values] of Object.entries(samples)) {
    if (values.length > 0) registry.registerMetric(metricOf(name as FamilyName, values));
  }
  return registry.metrics();
}

/** The part of a metric that a registry reads. */
function metricOf(name: FamilyName, samples: readonly Sample[]): Gauge {
  const { type, help }: Family = families[name];
  const full = prefix + name;
  const values = samples.map(({ suffix, ...sample }) => (suffix ? { ...sample, metricName: full + suffix } : sample));
  const metric = { name: full, help, type, aggregator: "sum", values };
  return { name: full, get: async () => metric } as unknown as Gauge;
}
