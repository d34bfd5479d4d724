// What the gateway costs beside a bare proxy of the same platform, nginx and the model's process itself: the same requests to each
// in turn, several rounds, reported as ratios. Processor time is the steadiest figure. Arguments: rounds (3), names of rows (all).
import { processorTime, residentMegabytes } from "../../support/processes.ts";
import { type Answers, type Ask, ask } from "./load.ts";
import { startTargets, type Target } from "./targets.ts";

interface Row {
  readonly name: string;
  readonly what: Ask;
  readonly count: number;
  readonly connections: number;
  /** More is better of rates, less of times. */
  readonly figures: Readonly<Record<string, (answers: Answers, cpuMs: number, row: Row) => number>>;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

const perThousand = (_answers: Answers, cpuMs: number, { count }: Row): number => (cpuMs / count) * 1000;
const perEvent = ({ events }: Answers, cpuMs: number): number => (cpuMs / events) * 1000;
const flat = { "events/ms": ({ events, ms }: Answers) => events / ms, "CPU s/M events": perEvent };

const rows: readonly Row[] = [
  {
    name: "c1",
    what: { stream: false },
    count: 1_500,
    connections: 1,
    figures: { "p50 us": ({ totals }) => quantile(totals, 0.5) * 1000, "CPU ms/1000": perThousand },
  },
  {
    name: "c32",
    what: { stream: false },
    count: 6_000,
    connections: 32,
    figures: { "req/s": ({ ms }, _cpu, { count }) => (count / ms) * 1000, "CPU ms/1000": perThousand },
  },
  {
    name: "ttfb",
    what: { stream: true, tokens: 10 },
    count: 1_000,
    connections: 1,
    figures: { "p50 us": ({ firsts }) => quantile(firsts, 0.5) * 1000, "CPU ms/1000": perThousand },
  },
  { name: "flat16", what: { stream: true, tokens: 20_000 }, count: 48, connections: 16, figures: flat },
  { name: "flat512", what: { stream: true, tokens: 1_000 }, count: 1024, connections: 512, figures: flat },
  {
    name: "paced64",
    what: { stream: true, tokens: 100, pace: 20 },
    count: 64,
    connections: 64,
    figures: { "p99 ms": ({ delays }) => quantile(delays, 0.99), "CPU s/M events": perEvent },
  },
  {
    name: "paced512",
    what: { stream: true, tokens: 100, pace: 20 },
    count: 512,
    connections: 512,
    figures: { "p99 ms": ({ delays }) => quantile(delays, 0.99), "CPU s/M events": perEvent },
  },
  {
    name: "20MB",
    what: { stream: false, bytes: 20e6 },
    count: 12,
    connections: 1,
    figures: { "p50 ms": ({ totals }) => quantile(totals, 0.5), "CPU ms": (_a, cpu, { count }) => cpu / count },
  },
];

const [rounds = 3] = process.argv.slice(3, 4).map(Number);
const wanted = process.argv.slice(4);

async function memory({ pids }: Target): Promise<number> {
  return (await Promise.all(pids.map(residentMegabytes))).reduce((sum, each) => sum + each, 0);
}

const show = (value: number): string => (value >= 1000 ? value.toFixed(0) : value.toPrecision(3));

async function run(targets: readonly Target[]): Promise<void> {
  const warmUp = { stream: false };
  for (const target of targets) await ask(target, warmUp, 3_000, 32);
  const atRest = await Promise.all(targets.map(memory));
  console.log(`| | | ${targets.map(({ name }) => name).join(" | ")} | gateway / bare (range) |`);
  console.log(`|---|---|${targets.map(() => "---:|").join("")}---:|`);
  for (const row of rows) {
    if (wanted.length > 0 && !wanted.includes(row.name)) continue;
    const found = targets.map(() => new Map<string, number[]>(Object.keys(row.figures).map((name) => [name, []])));
    for (let round = 0; round < rounds; round++)
      for (const [at, target] of targets.entries()) {
        const before = await processorTime(target.pids);
        const answers = await ask(target, row.what, row.count, row.connections);
        const cpuMs = (await processorTime(target.pids)) - before;
        for (const [name, figure] of Object.entries(row.figures))
          found[at]?.get(name)?.push(figure(answers, cpuMs, row));
      }
    for (const name of Object.keys(row.figures)) {
      const of = (target: string): readonly number[] =>
        found[targets.findIndex((each) => each.name === target)]?.get(name) ?? [];
      const ratios = of("gateway").map((value, round) => value / (of("bare")[round] ?? Number.NaN));
      const values = targets.map((target) => show(quantile(of(target.name), 0.5)));
      const range = `${quantile(ratios, 0.5).toFixed(2)} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`;
      console.log(`| ${row.name} | ${name} | ${values.join(" | ")} | ${range} |`);
    }
  }
  const after = await Promise.all(targets.map(memory));
  const own = targets.findIndex(({ name }) => name === "gateway");
  // Of 512 streams, if they were among the rows.
  const goalAfter = wanted.length === 0 || wanted.some((name) => name.endsWith("512")) ? 180 : null;
  const memories = [
    ["RSS MB, warm", atRest, 80],
    ["RSS MB, after", after, goalAfter],
  ] as const;
  for (const [name, values, goal] of memories) {
    const verdict = goal === null ? "" : `< ${goal}: ${(values[own] ?? Number.NaN) < goal ? "reached" : "short"}`;
    console.log(`| memory | ${name} | ${values.map((value) => value.toFixed(0)).join(" | ")} | ${verdict} |`);
  }
}

const undo: (() => Promise<void>)[] = [];
try {
  await run(await startTargets({ after: (step) => void undo.push(step) }));
} finally {
  for (const step of undo) await step();
}
