// Reads a scrape by the rules of endpoint pickers (llm-d's core-metrics-extractor): of a family the first sample counts, nothing is
// summed, and a family that is absent or empty is an error.
import assert from "node:assert/strict";

export interface PickerView {
  /** The value that a picker takes; throws where it would report an error. */
  first(family: string): number;
  labels(family: string): readonly Readonly<Record<string, string>>[];
}

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export function pickerView(text: string): PickerView {
  const families = new Map<string, Sample[]>();
  let samples: Sample[] = [];
  let current = "";
  for (const line of text.split("\n")) {
    const [, type] = /^# TYPE (\S+) /.exec(line) ?? [];
    if (type !== undefined) {
      // What the parser of the pickers refuses: the whole scrape is lost.
      assert.ok(!families.has(type), `${type} comes twice`);
      families.set((current = type), (samples = []));
    } else if (line !== "" && !line.startsWith("#")) {
      const [, name = "", labels = "", value] = /^([\w:]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? assert.fail(line);
      assert.ok(name.startsWith(current) && current !== "", `${name} has no type`);
      const pairs = [...labels.matchAll(/(\w+)=("(?:[^"\\]|\\.)*")/g)];
      samples.push({
        labels: Object.fromEntries(pairs.map(([, key = "", quoted = ""]) => [key, String(JSON.parse(quoted))])),
        value: Number(value),
      });
    }
  }
  const samplesOf = (family: string): readonly Sample[] => families.get(family) ?? [];
  for (const family of families.keys()) assert.ok(samplesOf(family).length > 0, `${family} is empty`);
  return {
    first: (family) => {
      const [sample] = samplesOf(family);
      if (!sample) throw new Error(`metric family ${family} not found`);
      return sample.value;
    },
    labels: (family) => samplesOf(family).map(({ labels }) => labels),
  };
}
