// What the gateway costs beside a bare proxy of the same platform, nginx, haproxy and the model's process itself: the same requests to each
// in turn, several rounds after one to warm up, reported as ratios. Processor time is the steadiest figure. Arguments: rounds (5), names of rows (all).
import { withCleanUp } from "../../support/clean-up.ts";
import { processorTime, residentMegabytes } from "../../support/processes.ts";
import { type Goal, inTurn, judge, quantile } from "../goals.ts";
import { type Answers, type Ask, ask as askByNode } from "./load.ts";
import { askBy, buildPrograms } from "./programs.ts";
import { startTargets, type Target } from "./targets.ts";

interface Figure {
  /** More is better of rates, less of times. */
  readonly of: (answers: Answers, cpuMs: number, row: Row) => number;
  /** Of the ratio. */
  readonly goal: Goal;
  /** Of the gateway's ratio to nginx, where that is installed. */
  readonly besideNginx?: Goal;
}

interface Row {
  readonly name: string;
  readonly what: Ask;
  readonly count: number;
  readonly connections: number;
  readonly figures: Readonly<Record<string, Figure>>;
  /** The two targets of the ratio; where given, only these are measured. */
  readonly ratio?: readonly [of: string, to: string];
}

const perThousand: Figure["of"] = (_answers, cpuMs, { count }) => (cpuMs / count) * 1000;
const perEvent: Figure["of"] = ({ events }, cpuMs) => (cpuMs / events) * 1000;
const rate: Figure["of"] = ({ events, ms }) => events / ms;
const flat = {
  "events/ms": { of: rate, goal: { least: 0.9 }, besideNginx: { least: 1 } },
  "CPU s/M events": { of: perEvent, goal: { most: 1.11 } },
};
const paced = {
  "p99 ms": { of: ({ delays }: Answers) => quantile(delays, 0.99), goal: { most: 1.5 } },
  "CPU s/M events": { of: perEvent, goal: { most: 1.2 } },
};
const cpu = { of: perThousand, goal: { most: 1.15 } };
const usual = ["direct", "nginx", "haproxy", "bare", "gateway"];

const one: Row = {
  name: "c1",
  what: { stream: false },
  count: 1_500,
  connections: 1,
  figures: {
    "p50 us": { of: ({ totals }) => quantile(totals, 0.5) * 1000, goal: { most: 1.15 }, besideNginx: { most: 1.5 } },
    "CPU ms/1000": cpu,
  },
};
const many: Row = {
  name: "c32",
  what: { stream: false },
  count: 6_000,
  connections: 32,
  figures: {
    "req/s": {
      of: ({ ms }, _cpu, { count }) => (count / ms) * 1000,
      goal: { least: 0.9 },
      besideNginx: { least: 0.35 },
    },
    "CPU ms/1000": cpu,
  },
};
/**
 * One process takes a tenth more than another of its kind, over all its rounds: three of each had ratios from 1.01 to 1.15 in seven
 * runs, two runs of ten 1.01 to 1.03.
 */
const pairsOfFull = 8;
/** What there is to hold may cost a twentieth. */
const full = {
  ratio: ["full", "empty"],
  figures: { "CPU ms/1000": { of: perThousand, goal: { most: 1.05 } } },
} as const;

const rows: readonly Row[] = [
  one,
  many,
  { ...one, ...full, name: "full1" },
  { ...many, ...full, name: "full32" },
  {
    name: "ttfb",
    what: { stream: true, tokens: 10 },
    count: 1_000,
    connections: 1,
    figures: {
      "p50 us": { of: ({ firsts }) => quantile(firsts, 0.5) * 1000, goal: { most: 1.15 } },
      "CPU ms/1000": cpu,
    },
  },
  { name: "flat16", what: { stream: true, tokens: 20_000 }, count: 48, connections: 16, figures: flat },
  { name: "flat512", what: { stream: true, tokens: 1_000 }, count: 1024, connections: 512, figures: flat },
  {
    name: "ollama16",
    what: { stream: true, tokens: 20_000 },
    count: 48,
    connections: 16,
    ratio: ["Ollama", "gateway"],
    figures: {
      "events/ms": { of: rate, goal: { least: 0.6 } },
      "CPU s/M events": { of: perEvent, goal: { most: 1.67 } },
    },
  },
  { name: "paced64", what: { stream: true, tokens: 100, pace: 20 }, count: 64, connections: 64, figures: paced },
  { name: "paced512", what: { stream: true, tokens: 100, pace: 20 }, count: 512, connections: 512, figures: paced },
  {
    name: "20MB",
    what: { stream: false, bytes: 20e6 },
    count: 12,
    connections: 1,
    figures: {
      "p50 ms": { of: ({ totals }) => quantile(totals, 0.5), goal: { most: 1.15 } },
      "CPU ms": { of: (_answers, cpuMs, { count }) => cpuMs / count, goal: { most: 1.15 } },
    },
  },
];

const [rounds = 5] = process.argv.slice(3, 4).map(Number);
const wanted = process.argv.slice(4);
const unknown = wanted.filter((name) => !rows.some((row) => row.name === name));
if (unknown.length > 0)
  throw new Error(`there is no row ${unknown.join(", ")}: ${rows.map(({ name }) => name).join(", ")} are known`);
const chosen = rows.filter(({ name }) => wanted.length === 0 || wanted.includes(name));

async function memory({ pids }: Target): Promise<number> {
  return (await Promise.all(pids.map(residentMegabytes))).reduce((sum, each) => sum + each, 0);
}

let ask = askByNode;
const show = (value: number): string => (value >= 1000 ? value.toFixed(0) : value.toPrecision(3));

async function run(chosen: readonly Row[], targets: readonly Target[]): Promise<void> {
  for (const target of targets) if (target.name !== "Ollama") await ask(target, { stream: false }, 3_000, 32);
  const processes = targets.filter(({ name, pids }) => pids.length > 0 && name !== "Ollama");
  const atRest = await Promise.all(processes.map(memory));
  const names = [...new Set(targets.map(({ name }) => name))];
  console.log(`| | | ${names.join(" | ")} | ratio (range) | goal |`);
  console.log(`|---|---|${names.map(() => "---:|").join("")}---:|---|`);
  for (const row of chosen) {
    const [of, to] = row.ratio ?? ["gateway", "bare"];
    const measured = await measure(
      row,
      targets.filter(({ name }) => (row.ratio ?? usual).includes(name)),
    );
    for (const [name, { goal, besideNginx }] of Object.entries(row.figures)) {
      const found: Record<string, number[]> = {};
      for (const { target, figures } of measured) (found[target] ??= []).push(...(figures[name] ?? []));
      const compare = (base: string, bounds: Goal): string => {
        const ratios = (found[of] ?? []).map((value, round) => value / (found[base]?.[round] ?? Number.NaN));
        const ratio = quantile(ratios, 0.5);
        const range = `${ratio.toFixed(2)} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`;
        return `${range} | ${judge(row.name, `${name}, ${of} / ${base}`, ratio, bounds, found)}`;
      };
      const values = names.map((target) => (found[target] ? show(quantile(found[target] ?? [], 0.5)) : ""));
      console.log(`| ${row.name} | ${name} | ${values.join(" | ")} | ${compare(to, goal)} |`);
      if (besideNginx && found["nginx"])
        console.log(`| ${row.name} | beside nginx |${" |".repeat(names.length)} ${compare("nginx", besideNginx)} |`);
    }
  }
  const after = await Promise.all(processes.map(memory));
  for (const [at, { name }] of processes.entries())
    console.log(`${name}: ${atRest[at]?.toFixed(0)} MB warm, ${after[at]?.toFixed(0)} MB after`);
}

interface Measured {
  readonly target: string;
  /** A value of each figure per round. */
  readonly figures: Readonly<Record<string, number[]>>;
}

/** Round by round, the targets in turns. */
async function measure(row: Row, targets: readonly Target[]): Promise<readonly Measured[]> {
  const measured = targets.map(({ name }) => ({
    target: name,
    figures: Object.fromEntries(Object.keys(row.figures).map((figure) => [figure, [] as number[]])),
  }));
  // Each program's code is compiled by then: the gateway has more of it than the bare proxy.
  for (const target of targets) await ask(target, row.what, row.count, row.connections);
  for (let round = 0; round < rounds; round++)
    for (const [at, target] of inTurn([...targets.entries()], round)) {
      const before = await processorTime(target.pids);
      const answers = await ask(target, row.what, row.count, row.connections);
      const cpuMs = (await processorTime(target.pids)) - before;
      for (const [name, figure] of Object.entries(row.figures))
        measured[at]?.figures[name]?.push(figure.of(answers, cpuMs, row));
    }
  return measured;
}

await withCleanUp(async (t) => {
  const programs = await buildPrograms(t);
  if (programs) ask = (...asked) => askBy(programs.load, ...asked);
  console.log(`Client and emulator: ${programs ? "C++" : "Node, as there is no C++ compiler (c++)"}.`);
  const emulator = programs?.emulator ?? null;
  const withFull = chosen.filter(({ ratio }) => ratio === full.ratio);
  const others = chosen.filter((row) => !withFull.includes(row));
  const measured = async (part: readonly Row[], pairs: number): Promise<void> => {
    if (part.length > 0) await withCleanUp(async (own) => run(part, await startTargets(own, { pairs, emulator })));
  };
  await measured(others, 0);
  // By themselves: gateways that have a lot to hold look at it while others are measured.
  await measured(withFull, pairsOfFull);
});
