// Random histories of documents and mishaps, for the whole plan: planned to the end, then carried out in a simulated machine.
import assert from "node:assert/strict";
import fc from "fast-check";
import { selectFiles } from "../../../src/cache/layout/select.ts";
import { toGatewayError } from "../../../src/core/errors.ts";
import { parseModelId, repoOf } from "../../../src/core/ids.ts";
import type { Desired } from "../../../src/desired/document/document.ts";
import { type Action, laneOf, type Plan } from "../../../src/plan/actions.ts";
import type { Observed } from "../../../src/plan/observed.ts";
import { failureOf, type HubAnswer, type HubAnswers, isPull, questionOf } from "../../../src/plan/whole/hub-answers.ts";
import { type PlanEnd, type PlannedStep, planSteps } from "../../../src/plan/whole/steps.ts";
import { build, hub, randomDesired, randomMoment, runs, type WorldSeed } from "./random-worlds.ts";
import type { SimulatedWorld } from "./simulated-world.ts";
import { mainCommit, otherCommit, silenceLimitMs } from "./world.ts";

/** What the simulated hub would say. */
function answersFor({ actions, held }: Plan): HubAnswers {
  const all = [...actions, ...held.map(({ action }) => action)];
  return new Map(all.filter(isPull).map((pull) => [questionOf(pull), answerTo(pull)]));
}

function answerTo(pull: Action): HubAnswer {
  const id = pull.kind === "model.pull" ? parseModelId(pull.model) : null;
  if (pull.kind !== "model.pull" || !id) throw new Error("no such question");
  try {
    const tree = (hub[repoOf(id)] ?? []).map((path) => ({ path, size: 1000, oid: `blob-${path}` }));
    const { model } = selectFiles(repoOf(id), id.tag, tree);
    const commit = (pull.revision ?? "main") === "main" ? mainCommit : otherCommit;
    return { kind: "files", commit, files: model, tree };
  } catch (error) {
    return { kind: "refused", failure: failureOf(toGatewayError(error)) };
  }
}

export function wholeOf(simulated: SimulatedWorld): { readonly steps: readonly PlannedStep[]; readonly end: PlanEnd } {
  const now = simulated.plan();
  const generator = planSteps({
    desired: simulated.desired,
    observed: simulated.observe(),
    context: { now: simulated.now(), backoff: simulated.backoff(), silenceLimitMs },
    now,
    running: [],
    answers: answersFor(now),
    inFlight: new Map(),
    memory: new Map(),
  });
  const steps: PlannedStep[] = [];
  for (let next = generator.next(); ; next = generator.next()) {
    if (next.done) return { steps, end: next.value };
    if (next.value) steps.push(next.value);
  }
}

/** Acts as the gateway does, one action after the other, and says what succeeded. */
export function act(simulated: SimulatedWorld): readonly Action[] {
  const done: Action[] = [];
  for (let rounds = 0; rounds < 200; rounds++) {
    const { actions, held } = simulated.plan();
    const next = actions.find(({ kind }) => laneOf(kind) !== "transfer") ?? actions[0];
    if (next) {
      if (simulated.execute(next)) done.push(next);
      continue;
    }
    const { router } = simulated.observe();
    const silent = router.silentSince === null ? [] : [router.silentSince + silenceLimitMs];
    const due = [...held.flatMap(({ until }) => until ?? []), ...silent].filter((at) => at > simulated.now());
    if (due.length === 0) return done;
    simulated.waitUntil(Math.min(...due));
  }
  throw new Error("it does not come to rest");
}

export const named = ({ kind, key, reason }: Action): string => `${kind} ${key} ${reason}`;

/** What of a world the plan must say exactly. */
export function essence({ cache, preset, inventory, router }: Observed): unknown {
  assert.ok(cache.state === "known" && preset.state === "known");
  const found = {
    models: cache.value.models.map(({ id, commit, files, blobs, bytes, complete, damage, upstreamId, routerId }) => ({
      id,
      commit,
      files,
      blobs,
      bytes,
      complete,
      damage,
      upstreamId,
      routerId,
    })),
    preset: preset.value.text,
    inventory: inventory
      .map(({ id, commit, files, revision }) => ({ id, commit, revision, files: files.map(({ path }) => path) }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    router: {
      phase: router.phase,
      preset: router.loadedPreset,
      isCurrent: router.loadedCache === cache.value.signature,
      models: router.models.state === "known" && router.models.value.map(({ id, value }) => [id, value]).toSorted(),
    },
  };
  // The hash of a file that is imported is known once it is.
  return JSON.parse(JSON.stringify(found).replaceAll("expected ", "blob-").replaceAll("0".repeat(40), mainCommit));
}

/** A machine some way along, and the document that it gets. */
export const histories = fc.tuple(randomMoment, randomDesired);

/** Of a router without a live reload the plan cannot know it. */
export function begun([seed, next]: readonly [WorldSeed, Desired]): SimulatedWorld {
  const simulated = build({ ...seed, reloads: true });
  simulated.desired = next;
  return simulated;
}

/** A plan that is executed action by action ends where it says. */
export function endsAsPlanned(numRuns: number): void {
  fc.assert(
    fc.property(histories, (history) => {
      const simulated = begun(history);
      const { steps, end } = wholeOf(simulated);
      assert.ok(end.isComplete);
      for (const { action, notBefore } of steps) {
        if (notBefore !== null) simulated.waitUntil(notBefore);
        assert.ok(simulated.execute(action), named(action));
      }
      for (const { action } of end.failures) assert.ok(!simulated.execute(action), named(action));
      assert.deepEqual(essence(end.world.observed), essence(simulated.observe()));
      assert.deepEqual(end.world.desired, simulated.desired);
    }),
    { ...runs, numRuns, includeErrorInReport: true },
  );
}
