// What becomes of answers under way while models take turns, contexts change and processes die: the same clients, the same
// disturbances, through the engine's own router and through the gateway. Arguments: rounds of each disturbance (6), seed (1).

import type { Answer } from "../support/chaos/ask.ts";
import { residents } from "../support/chaos/models.ts";
import { type Streams, startStreams } from "../support/chaos/streams.ts";
import { until } from "../support/scratch.ts";
import { between, randomFrom } from "../support/seeded.ts";
import { bareSide, gatewaySide, type Side } from "./drops-sides.ts";

const [rounds = 6, seed = 1] = process.argv.slice(3).map(Number);
/** A client's patience, ms. */
const limitMs = 60_000;

interface Disturbance {
  readonly name: string;
  make(side: Side, streams: Streams, pick: (below: number) => number, round: number): Promise<void>;
}

/** Each round and each way has a size of its own: to set the one that is there already would be no change. */
function contextChange(way: "reload" | "restart"): Disturbance["make"] {
  return async (side, streams, pick, round) => {
    const model = residents[pick(residents.length)] ?? "";
    await streams.midAnswer(1, model);
    await side.setContext(model, (way === "reload" ? 2048 : 2304) + 512 * (round % 12), way);
  };
}

async function kill(side: Side, model: string | null): Promise<void> {
  process.kill(await until("a process to kill", () => side.processOf(model), 30_000), "SIGKILL");
}

const disturbances: readonly Disturbance[] = [
  { name: "four models take turns on two places", make: async (_side, streams) => streams.moreWhole(10) },
  { name: "a context size changes (bare: reload)", make: contextChange("reload") },
  { name: "a context size changes (bare: restart)", make: contextChange("restart") },
  {
    name: "a model's process is killed",
    make: async (side, streams, pick) => {
      const model = residents[pick(residents.length)] ?? "";
      await streams.midAnswer(1, model);
      await kill(side, model);
    },
  },
  {
    name: "the router is killed",
    make: async (side, streams) => {
      await streams.midAnswer(2);
      await kill(side, null);
    },
  },
];

interface Tally {
  readonly begun: number;
  readonly whole: number;
  /** An orderly end before the text's own, without a word. */
  readonly silent: number;
  /** An error frame. */
  readonly told: number;
  /** The connection broke. */
  readonly broken: number;
  /** Another status than 200, or nobody listened. */
  readonly wrong: number;
  readonly hung: number;
  readonly medianWaitMs: number;
}

async function measure(side: Side, { make }: Disturbance): Promise<Tally> {
  const random = randomFrom(seed);
  const answers: Answer[] = [];
  const streams = startStreams({
    seed,
    clients: ["compat", "whole", "messages", "compat"],
    models: residents,
    target: side.target,
    afterRefusal: side.afterRefusal,
    limitMs,
    moment: () => "",
    onAnswer: (answer) => answers.push(answer),
  });
  for (let round = 0; round < rounds; round++) {
    await make(side, streams, (below) => between(random, 0, below), round);
    await streams.moreWhole(4);
  }
  await streams.stop();
  const count = (test: (answer: Answer) => boolean): number => answers.filter(test).length;
  const waits = answers.flatMap(({ outcome, firstTextMs }) => (outcome === "whole" ? [firstTextMs ?? 0] : []));
  return {
    begun: answers.length,
    whole: waits.length,
    silent: count(({ outcome }) => outcome === "cut" || outcome === "foreign"),
    told: count(({ outcome, status }) => outcome === "error" && status === 200),
    broken: count(({ outcome }) => outcome === "lost"),
    wrong: count(({ outcome, status }) => outcome === "refused" || (outcome === "error" && status !== 200)),
    hung: count(({ outcome }) => outcome === "hung"),
    medianWaitMs: Math.round(waits.toSorted((a, b) => a - b)[Math.floor(waits.length / 2)] ?? 0),
  };
}

async function run(): Promise<void> {
  const endings: (() => Promise<void>)[] = [];
  const ending = { after: (fn: () => Promise<void>) => void endings.push(fn) };
  console.log(`seed ${seed}, ${rounds} rounds of each, 4 clients, 4 models, 2 loaded at a time\n`);
  console.log(
    "| | | begun | whole | cut silently | cut, told | connection broken | other status or refused | hung | median wait |",
  );
  console.log("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
  try {
    const sides = [await bareSide(ending), await gatewaySide(ending)];
    for (const disturbance of disturbances) {
      for (const side of sides) {
        const { begun, whole, silent, told, broken, wrong, hung, medianWaitMs } = await measure(side, disturbance);
        const counts = [begun, whole, silent, told, broken, wrong, hung].join(" | ");
        console.log(`| ${disturbance.name} | ${side.name} | ${counts} | ${medianWaitMs} ms |`);
      }
    }
  } finally {
    for (const end of endings) await end();
  }
}

await run();
