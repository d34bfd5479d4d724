// What is said of the gateway, and since when.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { errorCatalog } from "../../../src/core/error-catalog.ts";
import { conditionTable } from "../../../src/status/condition-table.ts";
import { gatewayFindings, toConditions } from "../../../src/status/conditions.ts";
import type { Condition, StatusInput } from "../../../src/status/finding.ts";
import { modelFindings } from "../../../src/status/model-findings.ts";
import { build, randomMoment } from "../plan/random-worlds.ts";
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

const errorReasons = new Set<string>(Object.values(errorCatalog).map(({ reason }) => reason));

/** They take the reason of another condition. */
const summaries = new Set(["Ready", "Healthy"]);

const gateway: readonly (readonly [why: string, situation: Situation, conditions: Readonly<Record<string, string>>])[] =
  [
    [
      "at rest",
      { document: model, machine: pulled },
      {
        Ready: "True Serving",
        SourceValid: "True Applied",
        Synced: "True AsDesired",
        Reconciling: "False Idle",
        Stalled: "False NotStalled",
        RouterReady: "True Running",
        CacheReadable: "True Readable",
        DiskRoom: "True Enough",
        HubReachable: "Unknown NotTried",
      },
    ],
    ["a pull is planned", { document: model }, { Ready: "True Serving", Synced: "False OutOfSync" }],
    [
      "a pull is running",
      {
        document: model,
        running: [{ action: pullOfModel, startedAt: 0, progress: null }],
      },
      { Synced: "False OutOfSync", Reconciling: "True Progressing" },
    ],
    [
      "a pull waits to be tried again",
      { document: model, backoff: new Map([["model.pull model/acme/a:Q8_0", failure]]) },
      { Synced: "False OutOfSync", Reconciling: "True ProgressingWithRetry", Stalled: "False NotStalled" },
    ],
    [
      "a pull failed for good",
      { document: model, backoff: stalledPull },
      { Ready: "False Stalled", Synced: "False OutOfSync", Reconciling: "False Idle", Stalled: "True QuantNotFound" },
    ],
    [
      "prune, and an emptied list",
      { document: { prune: true, models: [] }, machine: { ...pulled, inventory: { "acme/a:Q8_0": ["a-Q8_0.gguf"] } } },
      { Ready: "True Serving", Synced: "True PruneHeld", Reconciling: "False Idle" },
    ],
    [
      "the source of a model that is here is not there",
      {
        document: { models: [{ id: "acme/a:Q8_0", source: "./a.gguf" }] },
        machine: { files: ["acme/a/a-Q8_0.gguf"], sources: { "./a.gguf": null } },
      },
      { Ready: "True Serving", Synced: "False SourceMissing", Stalled: "False NotStalled" },
    ],
    ["suspended", { document: { ...model, suspend: true } }, { Synced: "False Suspended", Reconciling: "False Idle" }],
    [
      "a prune whose time has not come",
      {
        document: { prune: true, models: ["acme/b:Q8_0"] },
        machine: {
          files: ["acme/a/a-Q8_0.gguf", "acme/b/b-Q8_0.gguf"],
          inventory: { "acme/a:Q8_0": { files: ["a-Q8_0.gguf"], leftAt: null } },
        },
      },
      { Ready: "True Serving", Synced: "True PrunePending", Reconciling: "False Idle" },
    ],
    [
      "the file is broken",
      { source: { ...applied, valid: false, reason: "ParseError", message: "line 3" } },
      { Ready: "True ServingLastGood", SourceValid: "False ParseError" },
    ],
    [
      "the file is not read yet",
      { source: { ...applied, valid: false, reason: "Unread" } },
      { SourceValid: "Unknown Unread" },
    ],
    ["no cache", { machine: { unknown: { cache: "unplugged" } } }, { Synced: "Unknown NotObserved" }],
    [
      "no preset file",
      { machine: { unknown: { preset: "EACCES" }, router: { phase: "stopped" } } },
      { Ready: "False PresetUnreadable", Synced: "Unknown NotObserved", RouterReady: "False PresetUnreadable" },
    ],
    [
      "a folder of the cache",
      { document: model, machine: { ...pulled, unreadable: ["acme/a"] } },
      { Synced: "Unknown NotObserved" },
    ],
    [
      "a setting that cannot be met",
      { document: { models: [{ id: "acme/a:Q8_0", preset: { mlock: true } }] }, machine: pulled },
      { Ready: "True Serving", Synced: "False CannotApply" },
    ],
    [
      "the engine is being looked for",
      { machine: { router: { phase: "stopped", binary: "missing" } } },
      { Ready: "False NotStarted", RouterReady: "False NotStarted" },
    ],
    [
      "no engine",
      {
        machine: { router: { phase: "stopped", binary: "missing" } },
        engineProblem: { reason: "EngineMissing", message: "x" },
      },
      { Ready: "False EngineMissing", RouterReady: "False EngineMissing" },
    ],
    [
      "the engine could not be installed",
      {
        machine: { router: { phase: "stopped", binary: "missing" } },
        engineProblem: { reason: "HubUnreachable", message: "x" },
      },
      { RouterReady: "False HubUnreachable" },
    ],
    [
      "the engine is being installed",
      { machine: { router: { phase: "stopped", binary: "installing" } } },
      { RouterReady: "False EngineInstalling" },
    ],
    ["the router starts", { machine: { router: { phase: "starting" } } }, { RouterReady: "False Starting" }],
    [
      "the router cannot start",
      {
        machine: { router: { phase: "stopped" } },
        backoff: new Map([["router.start router", { ...failure, reason: "EngineFailed" }]]),
      },
      { Ready: "False EngineFailed", RouterReady: "False EngineFailed" },
    ],
    [
      "the router crashed",
      { machine: { router: { phase: "stopped", crashes: [999_999], lastWords: "segfault" } } },
      { RouterReady: "False RouterCrashed" },
    ],
    [
      "the router is silent",
      { machine: { router: { silentSince: 999_999 } } },
      { Ready: "False RouterSilent", RouterReady: "False RouterSilent" },
    ],
    ["little room", { freeBytes: 1e6 }, { DiskRoom: "False DiskFull" }],
    ["the hub answers", { hub: { status: "reachable", message: "x" } }, { HubReachable: "True Answered" }],
    ["the hub does not", { hub: { status: "unreachable", message: "x" } }, { HubReachable: "False HubUnreachable" }],
  ];

for (const [why, situation, conditions] of gateway) {
  test(`gateway: ${why}`, () => {
    const findings = gatewayFindings(statusInput(situation));
    for (const [type, expected] of Object.entries(conditions))
      assert.equal(conditionOf(type, findings), expected, type);
  });
}

test("whatever the machine is like, each condition is told once, with a reason and a message", () => {
  fc.assert(
    fc.property(randomMoment, (seed) => {
      const simulated = build(seed);
      const status: StatusInput = {
        ...statusInput({}),
        desired: simulated.desired,
        observed: simulated.observe(),
        plan: simulated.plan(),
      };
      for (const findings of [
        gatewayFindings(status),
        ...simulated.desired.models.map(({ id }) => modelFindings(id, status)),
      ]) {
        const types = findings.map((finding) => finding.type);
        assert.deepEqual(types, [...new Set(types)]);
        for (const { type, reason, message } of findings) {
          assert.notEqual(message, "");
          const { reasons }: { readonly reasons: object } = conditionTable[type as keyof typeof conditionTable];
          assert.ok(
            reason in reasons || errorReasons.has(reason) || summaries.has(type),
            `${type} ${reason}: ${message}`,
          );
        }
      }
    }),
    { seed: 11, numRuns: 200 },
  );
});

test("a condition keeps its time until its status changes", () => {
  const found = (status: "True" | "False", reason: string) => [{ type: "Ready", status, reason, message: "m" }];
  const at = (conditions: readonly Condition[]): string | undefined => conditions[0]?.lastTransitionTime;
  const first = toConditions(found("True", "Serving"), [], 1, "1970-01-01T00:00:00.000Z");
  const second = toConditions(found("True", "ServingLastGood"), first, 2, "1970-01-01T00:00:05.000Z");
  const third = toConditions(found("False", "Stalled"), second, 2, "1970-01-01T00:00:09.000Z");
  assert.deepEqual(
    [at(first), at(second), at(third)],
    ["1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:09.000Z"],
  );
  assert.deepEqual([second[0]?.reason, second[0]?.observedGeneration], ["ServingLastGood", 2]);
});
