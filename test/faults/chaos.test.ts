// A gateway under chats from all sides, while its file, its API, its processes and its folders are given no peace: no answer
// suffers but for what only a kill explains, and after every step the world is what the document says. One seed is one run:
// CHAOS_SEED chooses it, CHAOS_MINUTES how long it goes on (default: a fixed number of steps).
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type BookDocument, bookYaml, createBook } from "../support/chaos/book.ts";
import { type ChaosDeps, makeChange, neverHad } from "../support/chaos/changes.ts";
import { makeFault } from "../support/chaos/faults.ts";
import {
  checkDocument,
  type Holdings,
  holdings,
  untilConverged,
  untilDocument,
  untilNoOrphans,
} from "../support/chaos/invariants.ts";
import { guest, idOf, residents } from "../support/chaos/models.ts";
import { chaosPlan, type Step, stepText } from "../support/chaos/plan.ts";
import { type Streams, startStreams } from "../support/chaos/streams.ts";
import { createWorld, type World } from "../support/chaos/world.ts";

const seed = Number(process.env["CHAOS_SEED"] ?? 6);
const minutes = Number(process.env["CHAOS_MINUTES"] ?? 0);
/** The clients rest at the eighth. */
const fewSteps = 9;

/** Two of four models loaded at a time, so that models take turns all the time. */
const environment = { GATEWAY_MODELS_MAX: "2", GATEWAY_WORKER_INTERVAL: "1" };
/** Longer than a drain and a start together. */
const answerLimitMs = 600_000;
/** What a gateway at rest may hold more than at its first rest. */
const tolerance: Holdings = { handles: 12, memoryMb: 120 };

const first: BookDocument = {
  context: { default: 4096 },
  models: Object.fromEntries(residents.map((name) => [idOf(name), { preset: { threads: 1 } }])),
};

interface Report {
  readonly steps: string[];
  readonly convergedMs: number[];
  readonly rests: string[];
}

test(`seed ${seed}: answers and document survive ${minutes > 0 ? `${minutes} minutes` : `${fewSteps} steps`}`, {
  timeout: minutes * 60_000 + 1_500_000,
}, async (t) => {
  const report: Report = { steps: [], convergedMs: [], rests: [] };
  const world = await createWorld(t, { models: [...residents, guest, neverHad], environment });
  world.hub.pace(`${neverHad}-model-Q8_0.gguf`, 4_000_000);
  const book = createBook(first);
  await world.folders.writeConfig(bookYaml(first));
  await world.start();
  await untilConverged(world, book.wanted());
  const streams = startStreams({
    seed,
    clients: ["compat", "native", "whole", "messages", "compat"],
    models: residents,
    target: world.target,
    afterRefusal: world.afterRefusal,
    limitMs: answerLimitMs,
    moment: () => report.steps.at(-1) ?? "the beginning",
  });
  try {
    await run(world, streams, { world, book, streams }, report);
    await streams.stop();
    assert.deepEqual(streams.takeViolations(), []);
    assert.equal(await world.end("SIGTERM"), 0);
    assert.deepEqual(await world.engines(), [], "processes after the end");
  } catch (error) {
    const again = `npm run test:faults -- chaos, with CHAOS_SEED=${seed}${minutes > 0 ? ` CHAOS_MINUTES=${minutes}` : ""}`;
    const flying = streams.inFlight().join("\n  ");
    throw new Error(
      `${error instanceof Error ? error.message : String(error)}\n\nagain: ${again}\nsteps:\n  ${report.steps.join("\n  ")}\nin flight:\n  ${flying}\n\nthe gateway's log ends with\n${await world.said()}`,
      { cause: error },
    );
  } finally {
    await streams.stop();
    tell(t, streams, report);
  }
});

async function run(
  world: World,
  streams: Streams,
  parts: Omit<ChaosDeps, "allow" | "faulty">,
  report: Report,
): Promise<void> {
  const ends = Date.now() + minutes * 60_000;
  let rested: { readonly life: number; readonly holdings: Holdings } | null = null;
  for (const step of chaosPlan(seed)) {
    if (minutes > 0 ? Date.now() > ends : step.number > fewSteps) return;
    report.steps.push(stepText(step));
    if (minutes > 0) console.log(`${new Date().toISOString()} ${stepText(step)}`);
    await makeStep(parts, step, report);
    if (!step.rest) continue;
    await streams.pause();
    const now = await holdings(world);
    report.rests.push(`life ${world.life()}: ${now.handles} handles, ${now.memoryMb} MB`);
    if (rested?.life === world.life()) {
      assert.ok(now.handles <= rested.holdings.handles + tolerance.handles, `handles grow: ${report.rests.join("; ")}`);
      assert.ok(now.memoryMb <= rested.holdings.memoryMb + tolerance.memoryMb, `it grows: ${report.rests.join("; ")}`);
    } else rested = { life: world.life(), holdings: now };
    streams.resume();
  }
}

async function makeStep(
  { world, book, streams }: Omit<ChaosDeps, "allow" | "faulty">,
  { change, faults, afterMs }: Step,
  report: Report,
): Promise<void> {
  // There is something to disturb.
  await streams.midAnswer(2);
  const overs: (() => void)[] = [];
  const deps: ChaosDeps = {
    world,
    book,
    streams,
    faulty: faults.length > 0,
    allow: (allowance) => void overs.push(streams.allow(allowance)),
  };
  const faulting = delay(change ? afterMs : 0).then(() => Promise.all(faults.map((fault) => makeFault(deps, fault))));
  const [isMade] = await Promise.all([change ? makeChange(deps, change) : true, faulting]);
  await (change?.kind.startsWith("file") ? untilDocument(world, book) : checkDocument(world, book));
  if (!isMade && change?.kind === "api-repull") {
    assert.ok(await makeChange({ ...deps, faulty: false }, change), "the change is made once nothing is in its way");
    await checkDocument(world, book);
  }
  report.convergedMs.push(await untilConverged(world, book.wanted()));
  await untilNoOrphans(world);
  for (const over of overs) over();
  await streams.moreWhole(3);
  await checkDocument(world, book);
  assert.deepEqual(streams.takeViolations(), []);
}

function tell(t: TestContext, { counts }: Streams, { steps, convergedMs, rests }: Report): void {
  const sorted = convergedMs.toSorted((a, b) => a - b);
  const ms = (share: number): number => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  t.diagnostic(`seed ${seed}: ${steps.length} steps`);
  for (const step of steps) t.diagnostic(step);
  t.diagnostic(`streams ${JSON.stringify(counts)}`);
  t.diagnostic(`converged within ${ms(0.5)} ms (median), ${ms(1)} ms (longest); at rest: ${rests.join("; ")}`);
}
