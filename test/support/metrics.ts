// Reads what a gateway serves at /metrics.
import assert from "node:assert/strict";
import type { TestGateway } from "./gateway.ts";

export interface Scrape {
  readonly text: string;
  /** Names with their suffix. */
  readonly names: ReadonlySet<string>;
  /** The sum over the series that have these labels; undefined: there is none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
  series(name: string): readonly Readonly<Record<string, string>>[];
}

interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

function readMetrics(text: string): Scrape {
  const all = text.split("\n").flatMap((line): Series[] => {
    if (line === "" || line.startsWith("#")) return [];
    const [, name = "", labels = "", value = ""] = /^([\w:]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? assert.fail(line);
    const pairs = [...labels.matchAll(/(\w+)=("(?:[^"\\]|\\.)*")/g)];
    return [
      {
        name,
        labels: Object.fromEntries(pairs.map(([, label = "", quoted = ""]) => [label, String(JSON.parse(quoted))])),
        value: Number(value),
      },
    ];
  });
  const found = (name: string): readonly Series[] => all.filter((series) => series.name === `model_gateway_${name}`);
  return {
    text,
    names: new Set(all.map(({ name }) => name)),
    series: (name) => found(name).map(({ labels }) => labels),
    value: (name, labels = {}) => {
      const matching = found(name).filter((series) =>
        Object.entries(labels).every(([label, value]) => series.labels[label] === value),
      );
      return matching.length === 0 ? undefined : matching.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

export async function scrape({ url }: Pick<TestGateway, "url">): Promise<Scrape> {
  const response = await fetch(`${url}/metrics`);
  assert.equal(response.status, 200);
  return readMetrics(await response.text());
}
