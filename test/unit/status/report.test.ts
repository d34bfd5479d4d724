// The body of /status.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DesiredState, emptyTree } from "../../../src/desired/document/document.ts";
import type { Condition } from "../../../src/status/finding.ts";
import { actionBody, modelIds, type ReportInput, shortReport, statusReport } from "../../../src/status/report.ts";
import { rpcWarning } from "../../../src/status/worker-conditions.ts";
import { desiredFrom } from "../plan/world.ts";
import { pull, running, somePlan, write } from "./situations.ts";

function state(generation: number, document: object = {}): DesiredState {
  return {
    generation,
    tree: emptyTree,
    document: desiredFrom(document),
    hash: "",
    etag: `"${generation}"`,
    applied: null,
  };
}

function conditions(statuses: Readonly<Record<string, Condition["status"]>>): Condition[] {
  return Object.entries(statuses).map(([type, status]) => ({
    type,
    status,
    reason: "R",
    message: "m",
    observedGeneration: 1,
    lastTransitionTime: "",
  }));
}

const worker = {
  address: "h:1",
  endpoint: "10.0.0.1:1",
  latencyMs: 0.5,
  version: "8.0.0",
  devices: [{ freeBytes: 1, totalBytes: 2 }],
  conditions: conditions({ Reachable: "True", InUse: "False" }),
};

const atRest: ReportInput = {
  version: "1.2.3",
  id: "7f3a",
  startedAt: 0,
  stoppingSince: null,
  desired: state(3, { rpc: { mode: "rpc", workers: ["h:1"] } }),
  pass: { desired: state(3), plan: somePlan({}) },
  passedAt: 60_000,
  router: { phase: "ready", pid: 7, silentSince: null, crashes: [1, 2] },
  binary: "/bin/llama-server",
  speech: { transcription: null, synthesis: null },
  source: { path: "/gateway.yaml", valid: true, reason: "Applied", message: "", problems: [] },
  conditions: conditions({ Ready: "True", Healthy: "True", Synced: "True", Reconciling: "False", Stalled: "False" }),
  models: [],
  workers: [worker],
  running: [],
  memory: { limits: { Host: 8 } },
  inFlight: new Map([["a/b:c", 2]]),
  waiting: [{ model: "a/b:c", requests: 3, oldestMs: 20, for: "room" }],
};

test("the whole status of a gateway at rest", () => {
  assert.deepEqual(statusReport(atRest), {
    gateway: { version: "1.2.3", id: "7f3a", startedAt: "1970-01-01T00:00:00.000Z", ready: true },
    router: { connected: true, phase: "ready", pid: 7, binary: "/bin/llama-server", crashes: 2 },
    rpc: { mode: "rpc", minWorkers: 0, warning: rpcWarning, workers: [worker] },
    speech: { transcription: null, synthesis: null },
    sync: "Synced",
    health: "Healthy",
    generation: 3,
    documentHash: "",
    observedGeneration: 3,
    lastPass: "1970-01-01T00:01:00.000Z",
    applied: null,
    source: atRest.source,
    conditions: atRest.conditions,
    models: [],
    running: [],
    planned: [],
    memory: { limits: { Host: 8 } },
    inFlight: { "a/b:c": 2 },
    waiting: [{ model: "a/b:c", requests: 3, oldestMs: 20, for: "room" }],
    removals: [],
  });
});

test("what a stranger may see of it", () => {
  assert.deepEqual(shortReport(statusReport(atRest)), {
    gateway: { version: "1.2.3", id: "7f3a", ready: true },
    router: { connected: true },
    rpc: { mode: "rpc" },
  });
});

const variants: readonly (readonly [
  why: string,
  change: Partial<ReportInput>,
  expected: Readonly<Record<string, unknown>>,
])[] = [
  [
    "before the first pass",
    { pass: null, passedAt: null, conditions: [] },
    { lastPass: null, sync: "OutOfSync", health: "Degraded", observedGeneration: 0, planned: [] },
  ],
  [
    "a document that no pass has seen",
    { pass: { desired: state(2), plan: somePlan({}) } },
    { sync: "OutOfSync", observedGeneration: 2 },
  ],
  [
    "what cannot be seen",
    { conditions: conditions({ Ready: "True", Healthy: "True", Synced: "Unknown" }) },
    { sync: "Unknown", health: "Healthy" },
  ],
  [
    "at work",
    { conditions: conditions({ Ready: "True", Healthy: "True", Synced: "False", Reconciling: "True" }) },
    { sync: "OutOfSync", health: "Progressing" },
  ],
  [
    "at work, and not ready",
    { conditions: conditions({ Ready: "False", RouterReady: "False", Healthy: "False", Reconciling: "True" }) },
    { health: "Progressing" },
  ],
  [
    "stuck, though at work on something else",
    { conditions: conditions({ Ready: "False", Healthy: "False", Reconciling: "True", Stalled: "True" }) },
    { health: "Degraded" },
  ],
  [
    "chats are served, and something fails",
    { conditions: conditions({ Ready: "True", Healthy: "False", Reconciling: "False" }) },
    { health: "Degraded" },
  ],
  [
    "suspended",
    { desired: state(3, { suspend: true }), conditions: conditions({ Stalled: "True" }) },
    { health: "Suspended" },
  ],
  [
    "stopping",
    { stoppingSince: 2_000, conditions: conditions({ Ready: "True", Synced: "True" }) },
    {
      gateway: { version: "1.2.3", id: "7f3a", startedAt: "1970-01-01T00:00:00.000Z", ready: false },
      conditions: [
        {
          type: "Ready",
          status: "False",
          reason: "ShuttingDown",
          message: "The gateway is stopping.",
          observedGeneration: 1,
          lastTransitionTime: "1970-01-01T00:00:02.000Z",
        },
        ...conditions({ Synced: "True" }),
      ],
    },
  ],
  [
    "a silent router is not connected",
    { router: { phase: "ready", pid: 7, silentSince: 5, crashes: [] } },
    { router: { connected: false, phase: "ready", pid: 7, binary: "/bin/llama-server", crashes: 0 } },
  ],
  [
    "what is running",
    { running: [running] },
    {
      running: [
        { ...actionBody(pull), lane: "transfer", startedAt: "1970-01-01T00:00:01.000Z", progress: running.progress },
      ],
    },
  ],
  [
    "what is held",
    {
      pass: {
        desired: state(3),
        plan: somePlan({ held: [{ action: pull, why: "backoff", because: "it failed", until: 5 }] }),
      },
    },
    { planned: [{ ...actionBody(pull), held: "backoff", because: "it failed", until: "1970-01-01T00:00:00.005Z" }] },
  ],
];

for (const [why, change, expected] of variants) {
  test(`status: ${why}`, () => {
    const report: Readonly<Record<string, unknown>> = { ...statusReport({ ...atRest, ...change }) };
    for (const [key, value] of Object.entries(expected)) assert.deepEqual(report[key], value, key);
  });
}

test("an action is told without the text that it writes", () => {
  assert.deepEqual(actionBody(write), {
    kind: "preset.write",
    key: "preset",
    reason: "PresetAbsent",
    message: "write",
    disrupts: [],
  });
  assert.deepEqual(actionBody(pull), {
    kind: "model.pull",
    key: "model/a/b:c",
    reason: "ModelAbsent",
    message: "pull a/b:c",
    disrupts: [],
    model: "a/b:c",
  });
});

test("every model that the document names, then those that only the cache holds", () => {
  assert.deepEqual(modelIds(state(1, { models: ["a/b:c"] }), ["d/e:f"]), [
    { id: "a/b:c", desired: true },
    { id: "d/e:f", desired: false },
  ]);
});
