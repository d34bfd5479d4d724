// A plan as people read it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isEmpty, planLines } from "../../../src/cli/plan-text.ts";
import type { PlanBody } from "../../../src/client/index.ts";

const none = { count: 0, bytes: 0, unknown: 0 };
const resting: PlanBody = {
  generation: 1,
  converged: true,
  steps: [],
  complete: true,
  remaining: [],
  problems: [],
  hub: { asked: true, unanswered: [] },
  totals: {
    steps: 0,
    pull: none,
    import: none,
    delete: none,
    reload: 0,
    inFlight: 0,
    routerStarts: 0,
    held: 0,
    problems: 0,
  },
  memory: null,
  actions: [],
  running: [],
  held: [],
  unmanaged: [],
  spared: [],
  findings: {},
};
const step: PlanBody["steps"][number] = {
  kind: "model.pull",
  key: "model/acme/a:Q8_0",
  model: "acme/a:Q8_0",
  reason: "ModelAbsent",
  message: "pull acme/a:Q8_0",
  disrupts: [],
  when: "now",
  notBefore: null,
  awaits: null,
  changes: [],
  bytes: 5.1e9,
  ends: [],
};
const plain = (_color: string, text: string): string => text;

test("nothing to do", () => {
  assert.deepEqual(planLines(resting, plain), ["Nothing to do."]);
  assert.equal(isEmpty(resting), true);
});

test("every step with its fields, sizes and times; the totals last", () => {
  const reload = {
    ...step,
    kind: "router.reload",
    key: "router",
    reason: "PresetChanged",
    message: "reload the router's preset",
    when: "later" as const,
    bytes: null,
    ends: [
      { model: "acme/b:Q8_0", inFlight: 2, memoryBytes: 2_100_000_000 },
      { model: "acme/d:Q8_0", inFlight: 0, memoryBytes: null },
    ],
  };
  const write = {
    ...step,
    kind: "preset.write",
    key: "preset",
    reason: "PresetDiffers",
    message: "write router.preset.ini",
    bytes: null,
    awaits: "an RPC worker was not probed yet",
    changes: [{ subject: "acme/b:Q8_0", field: "ctx-size", from: "4096", to: null }],
  };
  const removal = {
    ...step,
    kind: "model.remove",
    reason: "NoLongerDesired",
    message: "delete acme/c:Q8_0",
    notBefore: "2026-01-01T00:01:00.000Z",
    bytes: 3.2e9,
  };
  const held = {
    ...step,
    message: "pull acme/e:Q8_0",
    held: "room" as const,
    because: "the disk is too full",
    until: null,
  };
  const plan: PlanBody = {
    ...resting,
    steps: [step, { ...step, when: "running" }, write, reload, removal],
    remaining: [held],
    problems: [
      { subject: "acme/x:Q8_0", code: "hub_not_found", message: "the hub does not have acme/x.", hint: "Check it." },
    ],
    memory: {
      limits: { Host: 7.5 * 1024 ** 3 },
      changes: [
        { model: "acme/b:Q8_0", from: 5.1 * 1024 ** 3, to: 9 * 1024 ** 3, why: null, fits: false, onHub: true },
        { model: "acme/a:Q8_0", from: null, to: null, why: "the hub is silent", fits: null, onHub: true },
      ],
      bytes: 11 * 1024 ** 3,
      unknown: 1,
    },
    hub: {
      asked: true,
      unanswered: [
        { question: "a", why: "no answer" },
        { question: "b", why: "no answer" },
      ],
    },
    totals: {
      ...resting.totals,
      steps: 5,
      pull: { count: 2, bytes: 5.1e9, unknown: 1 },
      delete: { count: 1, bytes: 3.2e9, unknown: 0 },
      reload: 2,
      inFlight: 2,
      held: 1,
      problems: 1,
    },
  };
  assert.deepEqual(planLines(plan, plain), [
    "+ model.pull: pull acme/a:Q8_0, 5.10 GB (ModelAbsent)",
    "* model.pull: pull acme/a:Q8_0, 5.10 GB (ModelAbsent, under way)",
    "~ preset.write: write router.preset.ini (PresetDiffers, waits: an RPC worker was not probed yet)",
    "    acme/b:Q8_0 ctx-size: 4096 → none",
    "~ router.reload: reload the router's preset (PresetChanged)",
    "    ends the instance of acme/b:Q8_0 (2.0 GiB of memory), awaits 2 responses in flight until --drain-timeout",
    "    ends the instance of acme/d:Q8_0",
    "- model.remove: delete acme/c:Q8_0, 3.20 GB (NoLongerDesired, not before 2026-01-01T00:01:00.000Z)",
    "= model.pull: pull acme/e:Q8_0 (held: the disk is too full)",
    "! acme/x:Q8_0: the hub does not have acme/x. Check it.",
    "  sizes are not all known: no answer",
    "  acme/b:Q8_0 needs 9.0 GiB by the head of its file on the hub (now 5.1 GiB), and does not fit",
    "  acme/a:Q8_0 needs an unknown amount of memory: the hub is silent",
    "  all models together: 11 GiB and 1 of unknown need, where they may take 7.5 GiB of Host",
    "Plan: 5 steps, 2 to pull (5.10 GB and 1 of unknown size), 2 to reload (2 in flight), 1 to delete (3.20 GB), 1 held, 1 that cannot be done.",
  ]);
});

test("colors are those of a diff", () => {
  const painted = planLines({ ...resting, steps: [step] }, (color, text) => `<${color}>${text}`);
  assert.match(painted[0] ?? "", /^<green>\+ model\.pull/);
});

test("what runs for another document, what is unknown, unmanaged and spared", () => {
  const {
    when: _when,
    notBefore: _at,
    awaits: _awaits,
    changes: _changes,
    bytes: _bytes,
    ends: _ends,
    ...action
  } = step;
  const plan: PlanBody = {
    ...resting,
    complete: false,
    running: [{ ...action, lane: "transfer", startedAt: null, progress: null }],
    unmanaged: ["acme/a:Q8_0", "acme/u:Q8_0"],
    spared: ["acme/s:Q8_0"],
  };
  assert.deepEqual(planLines(plan, plain), [
    "* model.pull: pull acme/a:Q8_0 (ModelAbsent, under way)",
    "  what comes then is not known: run this again once these steps are done",
    "  acme/u:Q8_0 is in the cache and not in the document: unmanaged",
    "  acme/s:Q8_0 left the document when its list of models was emptied; prune leaves it unless allowEmpty is true",
    "Plan: 0 steps, 1 under way.",
  ]);
});
