// The steps of a whole plan: what each changes, moves and ends, and what is left when all are done.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Desired } from "../../../src/desired/document/document.ts";
import type { RunningAction } from "../../../src/plan/actions.ts";
import type { Observed } from "../../../src/plan/observed.ts";
import { plan } from "../../../src/plan/plan.ts";
import { failureOf, type HubAnswer } from "../../../src/plan/whole/hub-answers.ts";
import { type PlanEnd, type PlannedStep, planSteps, type WholeInput } from "../../../src/plan/whole/steps.ts";
import { totalsOf } from "../../../src/plan/whole/totals.ts";
import { desiredFrom, known, mainCommit, removalOf, restingRouter, silenceLimitMs, world } from "./world.ts";

const now = Date.parse("2026-01-01T00:00:00Z");

function stepsOf(
  desired: Desired,
  observed: Observed,
  more: Partial<WholeInput> = {},
): { readonly steps: readonly PlannedStep[]; readonly end: PlanEnd } {
  const context = { now, backoff: new Map(), silenceLimitMs };
  const input = {
    desired,
    observed,
    context,
    running: [],
    answers: new Map(),
    inFlight: new Map(),
    memory: new Map(),
    ...more,
  };
  const run = planSteps({ ...input, now: plan(desired, observed, input.context) });
  const steps: PlannedStep[] = [];
  for (let next = run.next(); ; next = run.next()) {
    if (next.done) return { steps, end: next.value };
    if (next.value) steps.push(next.value);
  }
}

const kinds = (steps: readonly PlannedStep[]): string[] => steps.map(({ action, when }) => `${when} ${action.kind}`);
const filesOf = (path: string, size: number): HubAnswer => {
  const files = [{ path, size, oid: `blob-${path}` }];
  return { kind: "files", commit: mainCommit, files, tree: files };
};
const a = { files: ["acme/a/a-Q8_0.gguf"], inventory: { "acme/a:Q8_0": ["a-Q8_0.gguf"] } };

test("a new size of a loaded model: the write names the field, the reload the instance that it ends, and its responses", () => {
  const before = desiredFrom({ models: [{ id: "acme/a:Q8_0", ctxSize: 4096 }] });
  const after = desiredFrom({ models: [{ id: "acme/a:Q8_0", ctxSize: 8192 }] });
  const observed = world(before, { ...a, router: { loaded: ["acme/a:Q8_0"] } });
  const { steps, end } = stepsOf(after, observed, {
    inFlight: new Map([["acme/a:Q8_0", 2]]),
    memory: new Map([["acme/a:Q8_0", 1000]]),
  });
  assert.deepEqual(kinds(steps), ["now preset.write", "later router.reload"]);
  const [write, reload] = steps;
  assert.deepEqual(write?.changes, [{ subject: "acme/a:Q8_0", field: "ctx-size", from: "4096", to: "8192" }]);
  assert.deepEqual([write?.ends, reload?.changes], [[], []]);
  assert.deepEqual(reload?.ends, [{ model: "acme/a:Q8_0", inFlight: 2, memoryBytes: 1000 }]);
  assert.deepEqual([totalsOf(steps).reload, totalsOf(steps).inFlight], [1, 2]);
  assert.deepEqual([end.isComplete, end.plan.actions, end.plan.held], [true, [], []]);
});

test("a new secret is a change, and is not shown", () => {
  const [before, after] = ["hf_one0a1b2c3d4e5f6a7b", "hf_two0a1b2c3d4e5f6a7b"].map((secret) =>
    desiredFrom({ models: [{ id: "acme/a:Q8_0", preset: { grammar: secret, "top-k": 4 } }] }),
  ) as [Desired, Desired];
  const { steps } = stepsOf(
    after,
    world(before, { ...a, router: { loaded: ["acme/a:Q8_0"], knows: ["ctx-size", "grammar", "top-k"] } }),
  );
  assert.deepEqual(steps[0]?.changes, [
    { subject: "acme/a:Q8_0", field: "grammar", from: "(redacted)", to: "(redacted)" },
  ]);
});

test("a pull to the end: bytes and commit by the hub, then the reload; without an answer no bytes", () => {
  const desired = desiredFrom({ models: [{ id: "acme/b:Q8_0", ctxSize: 512 }] });
  const observed = world(desiredFrom({}), {});
  const answers = new Map([["model/acme/b:Q8_0 main", filesOf("b-Q8_0.gguf", 5000)]]);
  const { steps, end } = stepsOf(desired, observed, { answers });
  assert.deepEqual(kinds(steps), ["now model.pull", "later preset.write", "later router.reload"]);
  assert.equal(steps[0]?.bytes, 5000);
  assert.deepEqual(steps[0]?.changes, [
    { subject: "acme/b:Q8_0", field: "file", from: null, to: "b-Q8_0.gguf" },
    { subject: "acme/b:Q8_0", field: "revision", from: null, to: "main" },
    { subject: "acme/b:Q8_0", field: "commit", from: null, to: mainCommit },
  ]);
  assert.deepEqual(totalsOf(steps).pull, { count: 1, bytes: 5000, unknown: 0 });
  const { cache } = end.world.observed;
  assert.ok(cache.state === "known");
  assert.deepEqual(
    cache.value.models.map(({ id, bytes }) => [id, bytes]),
    [["acme/b:Q8_0", 5000]],
  );
  const offline = stepsOf(desired, observed);
  assert.deepEqual(kinds(offline.steps), kinds(steps));
  assert.deepEqual(totalsOf(offline.steps).pull, { count: 1, bytes: 0, unknown: 1 });
  assert.ok(!offline.steps[0]?.changes.some(({ field }) => field === "commit"), "it is not known");
});

test("a misspelt repository: no step, a failure, and prune waits for it for good", () => {
  const desired = desiredFrom({ models: ["acme/mien:Q8_0"], prune: true, pruneAfter: 0 });
  const failure = failureOf(new GatewayError("hub_not_found", "the hub does not have acme/mien"));
  const answers = new Map<string, HubAnswer>([["model/acme/mien:Q8_0 main", { kind: "refused", failure }]]);
  const { steps, end } = stepsOf(desired, world(desired, a), { answers });
  assert.deepEqual(steps, []);
  assert.deepEqual(
    end.failures.map(({ action, failure: { code } }) => [action.key, code]),
    [["model/acme/mien:Q8_0", "hub_not_found"]],
  );
  assert.deepEqual(
    end.plan.held.map(({ action, why }) => [action.kind, why]),
    [
      ["model.pull", "stalled"],
      ["model.remove", "prune"],
    ],
  );
});

test("a rename: the new model first, the old one after its time, with its bytes", () => {
  const desired = desiredFrom({ models: ["acme/b:Q8_0"], prune: true, pruneAfter: 60 });
  const observed = world(desiredFrom({ models: ["acme/a:Q8_0"] }), {
    files: a.files,
    inventory: { "acme/a:Q8_0": { files: ["a-Q8_0.gguf"], leftAt: null } },
  });
  const answers = new Map([["model/acme/b:Q8_0 main", filesOf("b-Q8_0.gguf", 5000)]]);
  const { steps, end } = stepsOf(desired, observed, { answers });
  assert.deepEqual(kinds(steps), [
    "now model.pull",
    "later router.reload",
    "later model.remove",
    "later router.reload",
  ]);
  assert.deepEqual(
    steps.map(({ notBefore }) => notBefore),
    [null, null, now + 60_000, null],
  );
  assert.equal(steps[2]?.bytes, 1000);
  assert.deepEqual(totalsOf(steps).delete, { count: 1, bytes: 1000, unknown: 0 });
  assert.deepEqual([end.plan.held, end.world.observed.inventory.map(({ id }) => id)], [[], ["acme/b:Q8_0"]]);
});

test("a requested removal ends with its mark, and unloads the model", () => {
  const desired = { ...desiredFrom({}), removals: [removalOf("acme/a:Q8_0", ["a-Q8_0.gguf"])] };
  const observed = world(desiredFrom({ models: ["acme/a:Q8_0"] }), { ...a, router: { loaded: ["acme/a:Q8_0"] } });
  const { steps, end } = stepsOf(desired, observed, { inFlight: new Map([["acme/a:Q8_0", 1]]) });
  assert.deepEqual(kinds(steps), ["now model.remove", "later router.reload"]);
  assert.deepEqual(steps[0]?.ends, [{ model: "acme/a:Q8_0", inFlight: 1, memoryBytes: null }]);
  assert.deepEqual([totalsOf(steps).reload, end.world.desired.removals], [0, []]);
});

test("a pull that does not fit is held, with what is missing", () => {
  const desired = desiredFrom({ models: ["acme/b:Q8_0"] });
  const answers = new Map([["model/acme/b:Q8_0 main", filesOf("b-Q8_0.gguf", 3e9)]]);
  const observed = { ...world(desiredFrom({}), {}), freeBytes: known(1e9) };
  const { steps, end } = stepsOf(desired, observed, { answers });
  assert.deepEqual(steps, []);
  assert.deepEqual(
    end.plan.held.map(({ why }) => why),
    ["room"],
  );
  assert.match(
    end.plan.held[0]?.action.message ?? "",
    /pull acme\/b:Q8_0: it needs 2,862 MiB and 256 MiB stay free; .* are missing$/,
  );
});

test("suspended: nothing is a step", () => {
  const desired = desiredFrom({ models: ["acme/b:Q8_0"], suspend: true });
  const { steps, end } = stepsOf(desired, world(desired, {}));
  assert.deepEqual([steps, end.plan.held.map(({ why }) => why)], [[], ["suspended"]]);
});

test("a worker that was not probed yet: the write names what it waits for, and the reload follows", () => {
  const desired = desiredFrom({ rpc: { mode: "rpc", workers: ["127.0.0.1:50052"] } });
  const observed = {
    ...world(desiredFrom({}), {}),
    workers: world(desired, { workers: { "127.0.0.1:50052": "unprobed" } }).workers,
  };
  const { steps } = stepsOf(desired, observed);
  assert.deepEqual(
    steps.map(({ action, awaits }) => [action.kind, awaits]),
    [
      ["preset.write", "an RPC worker was not probed yet"],
      ["router.reload", null],
    ],
  );
  assert.deepEqual(steps[0]?.changes, [{ subject: "[*]", field: "rpc", from: null, to: "127.0.0.1:50052" }]);
});

test("what is under way counts as such, also where the world does not show any more that it is due", () => {
  const desired = desiredFrom({ models: ["acme/a:Q8_0"] });
  const observed = world(desired, { ...a, router: { phase: "starting" } });
  const action = {
    kind: "router.start",
    key: "router",
    reason: "RouterStopped",
    message: "start the router",
    disrupts: [],
  } as const;
  const running: RunningAction[] = [{ action, lane: "control", startedAt: now, progress: null }];
  const { steps, end } = stepsOf(desired, observed, { running });
  assert.deepEqual([kinds(steps), end.world.observed.router.phase], [["running router.start"], "ready"]);
  const first = stepsOf(desired, { ...world(desired, a), router: restingRouter }, { running });
  assert.deepEqual(kinds(first.steps), ["running router.start"]);
});

test("a file that a model is imported from: its bytes; missing, it is a failure", () => {
  const desired = desiredFrom({ models: [{ id: "local/one:Q8_0", source: "./one-Q8_0.gguf" }] });
  const observed = world(desiredFrom({}), {});
  const source = (stamp: string | null): Partial<Observed> => ({
    sources: new Map([["./one-Q8_0.gguf", { path: "/sources/one-Q8_0.gguf", stamp, bytes: 700 }]]),
  });
  const { steps } = stepsOf(desired, { ...observed, ...source("700:1") });
  assert.deepEqual(kinds(steps), ["now model.import", "later router.reload"]);
  assert.deepEqual(totalsOf(steps).import, { count: 1, bytes: 700, unknown: 0 });
  const missing = stepsOf(desired, { ...observed, ...source(null) });
  assert.deepEqual(
    missing.end.failures.map(({ failure: { code } }) => code),
    ["source_missing"],
  );
});

test("speech: the voice, then the engine that starts with it", () => {
  const desired = desiredFrom({ speech: { synthesis: { voice: "en_US-lessac-medium" }, start: "now" } });
  const answers = new Map<string, HubAnswer>([["voice/en_US-lessac-medium", { kind: "bytes", bytes: 63e6 }]]);
  const { steps, end } = stepsOf(desired, world(desired, {}), { answers });
  assert.deepEqual(kinds(steps), ["now voice.pull", "later speech.start"]);
  assert.deepEqual([steps[0]?.bytes, end.world.observed.speech.synthesis.choice], [63e6, "en_US-lessac-medium"]);
});

test("500 models to pull end, and share reloads", () => {
  const ids = Array.from({ length: 500 }, (_, index) => `acme/m${index}:Q8_0`);
  const { steps, end } = stepsOf(desiredFrom({ models: ids }), world(desiredFrom({}), {}));
  assert.ok(end.isComplete);
  assert.equal(totalsOf(steps).pull.count, 500);
  const reloads = steps.filter(({ action }) => action.kind === "router.reload").length;
  assert.ok(reloads > 1 && reloads <= 16, String(reloads));
});
