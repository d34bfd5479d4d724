// One subtest per file in cases/: a document, a machine, and what is planned for it.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import type { Desired } from "../../../src/desired/document/document.ts";
import { type Action, type BackoffEntry, backoffKey, type Plan, type PlanContext } from "../../../src/plan/actions.ts";
import { plan } from "../../../src/plan/plan.ts";
import { planSteps } from "../../../src/plan/whole/steps.ts";
import { packageRoot } from "../../../src/settings/settings.ts";
import { desiredFrom, removalOf, silenceLimitMs, type WorldInput, world } from "./world.ts";

interface PlanCase {
  readonly why: string;
  /** As in gateway.yaml, without `version`. */
  readonly desired?: object;
  /** Models that somebody asked to remove: their files' paths in the repository, by id. */
  readonly removals?: Readonly<Record<string, readonly string[]>>;
  /** Models that left the document when its list was emptied. */
  readonly spared?: readonly string[];
  readonly observed?: WorldInput;
  /** `underWay`: keys of transfers that have started; `isReader`: another gateway writes the cache. */
  readonly context?: {
    readonly now?: number;
    readonly backoff?: Readonly<Record<string, Partial<BackoffEntry>>>;
    readonly underWay?: readonly string[];
    readonly isReader?: boolean;
  };
  /** Of each action the fields that are named; of what is left out nothing may be there. */
  readonly expected: {
    readonly actions?: readonly Readonly<Record<string, unknown>>[];
    readonly held?: readonly {
      readonly kind: string;
      readonly why: string;
      readonly until?: number;
      readonly because?: string;
    }[];
    readonly unmanaged?: readonly string[];
    readonly spared?: readonly string[];
    readonly findings?: Readonly<Record<string, string>>;
  };
}

// tsc does not copy them: they are read where they were written.
const folder = join(packageRoot, "test", "unit", "plan", "cases");
const names = readdirSync(folder).filter((name) => name.endsWith(".yaml"));

test("there are cases", () => assert.ok(names.length >= 20));

for (const name of names) {
  const {
    why,
    desired = {},
    removals = {},
    spared = [],
    observed = {},
    context = {},
    expected,
  } = parse(readFileSync(join(folder, name), "utf8")) as PlanCase;
  test(`${name}: ${why}`, () => {
    const document = {
      ...desiredFrom(desired),
      removals: Object.entries(removals).map(([id, files]) => removalOf(id, files)),
      spared,
    };
    const backoff = new Map(
      Object.entries(context.backoff ?? {}).map(([key, entry]) => [key, { ...failedOnce, ...entry }]),
    );
    const found = plan(document, world(document, observed), {
      now: context.now ?? 1_000_000,
      backoff,
      silenceLimitMs,
      underWay: context.underWay ?? [],
      isReader: context.isReader,
    });
    const { actions = [], held = [], unmanaged = [], spared: left = [], findings = {} } = expected;
    assert.deepEqual(
      found.actions.map((action, index) => only(action, actions[index])),
      actions,
    );
    assert.deepEqual(
      found.held.map(({ action, why: reason, until, because }, index) => ({
        kind: action.kind,
        why: reason,
        ...(until === null ? {} : { until }),
        ...(held[index]?.because === undefined ? {} : { because }),
      })),
      held,
    );
    assert.deepEqual(found.unmanaged, unmanaged);
    assert.deepEqual(found.spared, left);
    assert.deepEqual(Object.fromEntries(found.findings), findings);
    const { now = 1_000_000, isReader } = context;
    leadsOn(document, observed, found, { now, backoff, silenceLimitMs, isReader });
  });
}

const failedOnce: BackoffEntry = {
  failures: 1,
  until: 0,
  stalled: false,
  code: "internal",
  reason: "InternalError",
  message: "it failed",
  hint: "",
};

/** The plan whole: everything that is to be done now is a step of it or will fail, and the steps lead to an end. */
function leadsOn(desired: Desired, observed: WorldInput, found: Plan, context: PlanContext): void {
  const input = { desired, observed: world(desired, observed), context, now: found };
  const run = planSteps({ ...input, running: [], answers: new Map(), inFlight: new Map(), memory: new Map() });
  const taken: Action[] = [];
  for (let next = run.next(); ; next = run.next()) {
    if (!next.done) {
      if (next.value) taken.push(next.value.action);
      continue;
    }
    const { isComplete, failures, plan: left } = next.value;
    const all = [...taken, ...failures.map(({ action }) => action)].map(backoffKey);
    assert.ok(isComplete);
    assert.deepEqual(left.actions, []);
    assert.deepEqual(
      found.actions.map(backoffKey).filter((key) => !all.includes(key)),
      [],
    );
    return;
  }
}

/** The fields that the expectation names; all of an action that nobody expected. */
function only(action: object, expected: object | undefined): object {
  return expected ? Object.fromEntries(Object.entries(action).filter(([key]) => key in expected)) : action;
}
