// Healthy of the gateway and Ready of each model: what fails them, which models are named, and whom it leaves alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Progress } from "../../../src/plan/actions.ts";
import { gatewayFindings } from "../../../src/status/conditions.ts";
import { type Finding, notServing } from "../../../src/status/finding.ts";
import { modelReady } from "../../../src/status/health.ts";
import { modelFindings } from "../../../src/status/model-findings.ts";
import { known } from "../plan/world.ts";
import {
  applied,
  conditionOf,
  failure,
  model,
  pulled,
  pullOfModel,
  type Situation,
  stalledPull,
  statusInput,
} from "./situations.ts";

const id = "acme/a:Q8_0";
const other = "acme/b:Q8_0";
const both = { models: [id, other] };
const bothHere = { files: ["acme/a/a-Q8_0.gguf", "acme/b/b-Q8_0.gguf"] };
const failingLoad = {
  failing: new Map([[id, { failures: 2, until: 2_000_000, message: "bad magic" }]]),
  firstTokens: new Map(),
};
const retried = new Map([[`model.pull model/${id}`, failure]]);
const progress = (completed: number): Progress => ({ phase: "downloading", completed, total: 100 });
const running = (completed: number | null): NonNullable<Situation["running"]> => [
  { action: pullOfModel, startedAt: 0, progress: completed === null ? null : progress(completed) },
];

function healthyOf(situation: Situation): Finding | undefined {
  return gatewayFindings(statusInput(situation)).find(({ type }) => type === "Healthy");
}

function readyOf(situation: Situation, name = id): Finding {
  const input = statusInput(situation);
  return modelReady(name, modelFindings(name, input), notServing(gatewayFindings(input)), input);
}

const cases: readonly (readonly [
  why: string,
  situation: Situation,
  healthy: string,
  ready: string,
  named: readonly string[],
])[] = [
  ["all is well", { document: model, machine: pulled }, "True NothingFails", "True OnDemand", []],
  [
    "a broken file takes no model's readiness",
    {
      document: model,
      machine: pulled,
      source: { ...applied, valid: false, reason: "ParseError", message: "gateway.yaml:3:1: x" },
    },
    "False ParseError",
    "True OnDemand",
    ["gateway.yaml:3:1"],
  ],
  [
    "a file that was not read yet is no failure",
    { document: model, machine: pulled, source: { ...applied, valid: false, reason: "Unread" } },
    "True NothingFails",
    "True OnDemand",
    [],
  ],
  [
    "the state folder takes no changes",
    { document: model, machine: pulled, state: { writable: false, reason: "DiskFull", message: "it is full" } },
    "False DiskFull",
    "True OnDemand",
    ["it is full"],
  ],
  [
    "damaged state files were set aside",
    { document: model, machine: pulled, state: { writable: true, reason: "FilesSetAside", message: "look at x" } },
    "False FilesSetAside",
    "True OnDemand",
    ["look at x"],
  ],
  [
    "a call's change could not be written into the file",
    { document: model, machine: pulled, source: { ...applied, reason: "WriteBackFailed", message: "read-only" } },
    "False WriteBackFailed",
    "True OnDemand",
    ["read-only"],
  ],
  ["a pull is planned", { document: model }, "True NothingFails", "False Absent", []],
  ["a first pull runs", { document: model, running: running(null) }, "True NothingFails", "False Pulling", []],
  ["a pull is stalled", { document: model, backoff: stalledPull }, "False ModelsFail", "False QuantNotFound", [id]],
  [
    "a pull waits for its next try",
    { document: model, backoff: retried },
    "False ModelsFail",
    "False HubUnreachable",
    [id, "no network"],
  ],
  [
    "its next try has brought nothing yet",
    { document: model, backoff: retried, running: running(null) },
    "False ModelsFail",
    "False HubUnreachable",
    [id],
  ],
  [
    "its next try brings bytes",
    { document: model, backoff: retried, running: running(7) },
    "True NothingFails",
    "False Pulling",
    [],
  ],
  [
    "a desired model cannot be loaded",
    { document: model, machine: pulled, requests: failingLoad },
    "False ModelsFail",
    "False LoadFailing",
    [id, "bad magic"],
  ],
  [
    "a model that the document does not name cannot be loaded",
    { document: { models: [] }, machine: pulled, requests: failingLoad },
    "True NothingFails",
    "False LoadFailing",
    [],
  ],
  [
    "a setting cannot be applied, and the model answers without it",
    { document: { models: [{ id, preset: { mlock: true } }] }, machine: pulled },
    "False ModelsFail",
    "True OnDemand",
    [id],
  ],
  [
    "the router does not run",
    {
      document: model,
      machine: { ...pulled, router: { phase: "stopped" } },
      backoff: new Map([["router.start router", { ...failure, reason: "EngineFailed" }]]),
    },
    "False EngineFailed",
    "False EngineFailed",
    [],
  ],
];

for (const [why, situation, healthy, ready, named] of cases)
  test(`health: ${why}`, () => {
    const found = healthyOf(situation);
    assert.equal(conditionOf("Healthy", found ? [found] : []), healthy, found?.message);
    assert.equal(conditionOf("Ready", [readyOf(situation)]), ready);
    for (const name of named) assert.ok(found?.message.includes(name), `${name} in ${found?.message}`);
  });

test("health: one bad model takes no other's readiness, and is named alone", () => {
  const situation: Situation = { document: both, machine: bothHere, requests: failingLoad };
  assert.equal(conditionOf("Ready", [readyOf(situation, id)]), "False LoadFailing");
  assert.equal(conditionOf("Ready", [readyOf(situation, other)]), "True OnDemand");
  const message = healthyOf(situation)?.message ?? "";
  assert.ok(message.includes(id) && !message.includes(other), message);
  assert.equal(conditionOf("Ready", gatewayFindings(statusInput(situation))), "True Serving");
});

test("health: every failing model is named, the first ten of many", () => {
  const ids = Array.from({ length: 12 }, (_, index) => `acme/m${index}:Q8_0`);
  const backoff = new Map(ids.map((each) => [`model.pull model/${each}`, { ...failure, stalled: true }] as const));
  const message = healthyOf({ document: { models: ids }, backoff })?.message ?? "";
  for (const each of ids.slice(0, 10)) assert.ok(message.includes(each), each);
  assert.match(message, /\(and 2 more\)/);
});

test("health: a model that is loaded answers while its router is silent", () => {
  const listed = (name: string, value: string) => ({ id: name, value, failed: false, args: [], nCtx: null });
  const models = known([listed(id, "loaded"), listed(other, "unloaded")]);
  const situation: Situation = { document: both, machine: { ...bothHere, router: { silentSince: 999_999, models } } };
  assert.equal(conditionOf("Ready", [readyOf(situation, id)]), "True Loaded");
  assert.equal(conditionOf("Ready", [readyOf(situation, other)]), "False RouterSilent");
  assert.equal(conditionOf("Healthy", [healthyOf(situation) as Finding]), "False RouterSilent");
});
