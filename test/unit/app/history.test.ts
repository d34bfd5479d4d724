// What a pass shows of a generation: in force, stuck or under way; and what counts as drift.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { driftIn, outcomeOf } from "../../../src/app/history.ts";
import { type DocumentTree, toDesired } from "../../../src/desired/document/document.ts";
import type { Action, BackoffEntry, HeldAction } from "../../../src/plan/actions.ts";
import type { Pass } from "../../../src/reconcile/loop.ts";
import { world } from "../plan/world.ts";

const base = { reason: "ModelAbsent", disrupts: [] } as const;
const pull: Action = {
  ...base,
  kind: "model.pull",
  key: "model/a",
  message: "pull a",
  model: "a",
  revision: undefined,
};
const write: Action = { ...base, kind: "preset.write", key: "preset", message: "write it", text: "", replaces: "" };
const start: Action = { ...base, kind: "router.start", key: "router", message: "start the router" };
const remove: Action = {
  ...base,
  kind: "model.remove",
  key: "model/b",
  message: "prune b",
  model: "b",
  requested: false,
};

const held = (action: Action, why: HeldAction["why"]): HeldAction => ({
  action,
  why,
  because: `it is ${why}`,
  until: null,
});

interface Shown {
  readonly actions?: readonly Action[];
  readonly held?: readonly HeldAction[];
  readonly running?: Pass["running"];
  readonly findings?: ReadonlyMap<string, string>;
  readonly tree?: DocumentTree;
  readonly phase?: "ready" | "stopped";
}

function passOf({
  actions = [],
  held = [],
  running = [],
  findings = new Map(),
  tree = { version: 1 },
  phase = "ready",
}: Shown) {
  const observed = world(toDesired(tree), {});
  return {
    desired: { generation: 1, tree, document: toDesired(tree), hash: "", etag: "", applied: null },
    observed: { ...observed, router: { ...observed.router, phase } },
    plan: { actions, held, findings, unmanaged: [], spared: [], rolledBack: new Set<string>(), autos: new Map() },
    running,
  };
}

const failure: BackoffEntry = {
  failures: 1,
  until: 0,
  stalled: false,
  code: "hub_unreachable",
  reason: "HubUnreachable",
  message: "the hub does not answer",
  hint: "",
};

function outcome(shown: Shown, backoff: ReadonlyMap<string, BackoffEntry> = new Map()): [string, string | null] {
  const { outcome, problem } = outcomeOf(passOf(shown), backoff);
  return [outcome, problem];
}

describe("the outcome of a generation", () => {
  it("is converged where nothing is left but later prunes", () => {
    assert.deepEqual(outcome({}), ["converged", null]);
    assert.deepEqual(outcome({ held: [held(remove, "prune")] }), ["converged", null]);
  });

  it("is pending while something is done, will be, or is tried again; then with what failed", () => {
    const running = [{ action: pull, lane: "transfer", startedAt: 1, progress: null }] as const;
    assert.deepEqual(outcome({ actions: [pull] }), ["pending", null]);
    assert.deepEqual(outcome({ running }), ["pending", null]);
    assert.deepEqual(outcome({ phase: "stopped" }), ["pending", null]);
    assert.deepEqual(outcome({ held: [held(write, "settling"), held(pull, "waiting")] }), ["pending", null]);
    const failed = new Map([["model.pull model/a", failure]]);
    assert.deepEqual(outcome({ held: [held(pull, "backoff")] }, failed), ["pending", "the hub does not answer"]);
    assert.deepEqual(outcome({ held: [held(pull, "stalled")], running }, failed), [
      "pending",
      "the hub does not answer",
    ]);
  });

  it("is stuck where what is left will not happen by itself, and says why", () => {
    const failed = new Map([["model.pull model/a", failure]]);
    assert.deepEqual(outcome({ held: [held(pull, "stalled")] }, failed), ["stuck", "the hub does not answer"]);
    assert.deepEqual(outcome({ held: [held(pull, "room")] }), ["stuck", "pull a: it is room"]);
    assert.deepEqual(outcome({ held: [held(pull, "suspended")], tree: { version: 1, suspend: true } }), [
      "stuck",
      "pull a: it is suspended",
    ]);
    assert.deepEqual(outcome({ findings: new Map([["a", "no such option"]]) }), ["stuck", "a: no such option"]);
  });
});

describe("drift", () => {
  const kinds = (shown: Shown, isRunning = true): string[] => driftIn(passOf(shown), isRunning).map(({ kind }) => kind);

  it("is what brings back a document that was in force, done or held", () => {
    assert.deepEqual(kinds({ actions: [pull, start], held: [held(write, "settling")] }), [
      "model.pull",
      "router.start",
      "preset.write",
    ]);
  });

  it("is neither a prune, nor the start of a run, nor what is suspended", () => {
    assert.deepEqual(kinds({ actions: [remove], held: [held(remove, "prune")] }), []);
    assert.deepEqual(kinds({ actions: [start, pull] }, false), ["model.pull"]);
    assert.deepEqual(kinds({ held: [held(pull, "suspended")], tree: { version: 1, suspend: true } }), []);
  });

  it("is what a crash ended, and not what a request asks for", () => {
    const choice = "voice-medium";
    const speech: Action = { ...start, kind: "speech.start", key: "speech/synthesis", engine: "synthesis", choice };
    assert.deepEqual(kinds({ actions: [{ ...speech, reason: "EngineCrashed" }] }), ["speech.start"]);
    assert.deepEqual(kinds({ actions: [{ ...speech, reason: "EngineStopped" }] }), []);
    const voice: Action = { ...base, kind: "voice.pull", key: "voice/a", message: "pull a", voice: "a" };
    assert.deepEqual(kinds({ actions: [voice] }), ["voice.pull"]);
    assert.deepEqual(kinds({ actions: [{ ...voice, requested: true }] }), []);
  });
});
