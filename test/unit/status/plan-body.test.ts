// The body of /api/plan.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Action, HeldAction, Plan, RunningAction } from "../../../src/plan/actions.ts";
import { failureOf } from "../../../src/plan/whole/hub-answers.ts";
import type { PlannedStep } from "../../../src/plan/whole/steps.ts";
import { planBody } from "../../../src/status/plan-body.ts";
import { actionBody } from "../../../src/status/report.ts";
import { desiredFrom, world } from "../plan/world.ts";
import { pull, running, somePlan, write } from "./situations.ts";

const other: Action = { ...pull, key: "model/d/e:f", model: "d/e:f", message: "pull d/e:f" };
const desired = desiredFrom({});
const end = { world: { desired, observed: world(desired, {}) }, failures: [], isComplete: true };

function bodyOf(now: Plan, under: readonly RunningAction[] = []): ReturnType<typeof planBody> {
  return planBody({ now, steps: [], end: { ...end, plan: now }, answers: null, generation: 4, running: under });
}

test("what is under way is not told twice", () => {
  const body = bodyOf(
    somePlan({
      actions: [pull, write],
      held: [{ action: write, why: "stalled", because: "it failed", until: null }],
      unmanaged: ["x/y:z"],
      findings: new Map([["a/b:c", "why"]]),
    }),
    [running],
  );
  const { actions, running: under, held, unmanaged, spared, findings, generation, converged } = body;
  const heldBody = { ...actionBody(write), held: "stalled", because: "it failed", until: null };
  assert.deepEqual(
    { actions, running: under, held, unmanaged, spared, findings, generation, converged },
    {
      generation: 4,
      converged: false,
      actions: [actionBody(write)],
      running: [
        { ...actionBody(pull), lane: "transfer", startedAt: "1970-01-01T00:00:01.000Z", progress: running.progress },
      ],
      held: [heldBody],
      unmanaged: ["x/y:z"],
      spared: [],
      findings: { "a/b:c": "why" },
    },
  );
  assert.deepEqual([body.remaining, body.problems], [[heldBody], [{ subject: "a/b:c", message: "why" }]]);
});

test("converged: nothing planned, held or running, but for what is pruned later", () => {
  assert.equal(bodyOf(somePlan({})).converged, true);
  assert.equal(bodyOf(somePlan({}), [{ ...running, startedAt: null }]).converged, false);
  const held = (why: HeldAction["why"]): Plan => somePlan({ held: [{ action: pull, why, because: "", until: null }] });
  assert.equal(bodyOf(held("suspended")).converged, false);
  assert.equal(bodyOf(held("prune")).converged, true);
});

test("a pull that the hub refuses is a problem; one for which the disk is too full is held", () => {
  const steps: PlannedStep[] = [
    { action: write, when: "now", notBefore: null, awaits: null, changes: [], bytes: null, ends: [] },
    {
      action: other,
      when: "later",
      notBefore: 2_000,
      awaits: null,
      changes: [],
      bytes: 7,
      ends: [{ model: "a/b:c", inFlight: 2, memoryBytes: null }],
    },
  ];
  const refused = { action: pull, failure: failureOf(new GatewayError("hub_not_found", "the hub has no a/b")) };
  const tooLarge = { action: other, failure: failureOf(new GatewayError("disk_full", "too full")) };
  const left = somePlan({
    held: [
      { action: pull, why: "stalled", because: "it failed: the hub has no a/b", until: null },
      { action: other, why: "room", because: "the disk is too full", until: null },
    ],
  });
  const body = planBody({
    now: somePlan({ actions: [write] }),
    steps,
    end: { ...end, plan: left, failures: [refused, tooLarge] },
    answers: new Map([
      ["model/a/b:c main", { kind: "refused", failure: refused.failure }],
      ["model/g/h:i main", { kind: "unknown", why: "no answer" }],
    ]),
    generation: 1,
    running: [],
  });
  assert.deepEqual(
    body.problems.map(({ subject, code, message }) => [subject, code, message]),
    [["a/b:c", "hub_not_found", "the hub has no a/b"]],
  );
  assert.deepEqual(
    body.remaining.map(({ model, held }) => [model, held]),
    [["d/e:f", "room"]],
  );
  assert.deepEqual(body.hub, { asked: true, unanswered: [{ question: "model/g/h:i main", why: "no answer" }] });
  assert.deepEqual(body.steps[1], {
    ...actionBody(other),
    when: "later",
    notBefore: "1970-01-01T00:00:02.000Z",
    awaits: null,
    changes: [],
    bytes: 7,
    ends: [{ model: "a/b:c", inFlight: 2, memoryBytes: null }],
  });
  assert.deepEqual(body.totals, {
    steps: 2,
    pull: { count: 1, bytes: 7, unknown: 0 },
    import: { count: 0, bytes: 0, unknown: 0 },
    delete: { count: 0, bytes: 0, unknown: 0 },
    reload: 1,
    inFlight: 2,
    routerStarts: 0,
    held: 1,
    problems: 1,
  });
});
