// Whether what is waited for is so, will not be so without help, or may still come.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Goal, verdictOf } from "../../../src/cli/wait-goal.ts";
import type { StatusBody } from "../../../src/client/index.ts";

type Condition = StatusBody["conditions"][number];

function condition(type: string, status: Condition["status"], reason: string): Condition {
  const message = `${type} is ${reason}. Do something.`;
  return { type, status, reason, message, observedGeneration: 1, lastTransitionTime: "2027-01-01T00:00:00Z" };
}

function model(id: string, ...conditions: readonly Condition[]): StatusBody["models"][number] {
  return { id, desired: true, conditions: [...conditions] };
}

function held(why: "stalled" | "room" | "backoff", id: string): StatusBody["planned"][number] {
  const message = `pull ${id}`;
  const rest = { reason: "Missing", disrupts: [], because: "it failed", until: null, model: id };
  return { kind: "model.pull", key: `model/${id}`, message, held: why, ...rest };
}

const applied = { sha256: "aa", revision: "r1", by: "http:PUT /api/desired", at: null };

/** With the conditions that differ from those of a gateway at rest. */
function status(conditions: readonly Condition[] = [], more: Partial<StatusBody> = {}): StatusBody {
  const atRest = [
    condition("Ready", "True", "Serving"),
    condition("SourceValid", "True", "Applied"),
    condition("Synced", "True", "AsDesired"),
    condition("Stalled", "False", "NotStalled"),
  ];
  const all = atRest.map((each) => conditions.find(({ type }) => type === each.type) ?? each);
  const body = { generation: 5, observedGeneration: 5, applied, conditions: all, models: [], planned: [], ...more };
  return body as unknown as StatusBody;
}

const synced = { for: "synced" } as const;
const busy = condition("Synced", "False", "OutOfSync");
const broken = condition("SourceValid", "False", "ParseError");
const stalled = condition("Stalled", "True", "RepoNotFound");
const of = (id: string): Goal => ({ for: { model: id } });

const cases: readonly (readonly [what: string, status: StatusBody, goal: Goal, state: string, reason: string])[] = [
  ["at rest", status(), synced, "met", "AsDesired"],
  ["at work", status([busy]), synced, "waiting", "OutOfSync"],
  ["a newer document than the last pass saw", status([], { generation: 6 }), synced, "waiting", "NotObserved"],
  ["a generation to come", status(), { ...synced, generation: 6 }, "waiting", "NotObserved"],
  ["a generation that is over", status(), { ...synced, generation: 4 }, "met", "AsDesired"],
  ["before the first pass", status([], { conditions: [] }), synced, "waiting", "NotObserved"],
  ["stalled", status([busy, stalled]), synced, "failed", "RepoNotFound"],
  ["suspended", status([condition("Synced", "False", "Suspended")]), synced, "failed", "Suspended"],
  ["a setting that cannot be", status([condition("Synced", "False", "CannotApply")]), synced, "failed", "CannotApply"],
  ["a broken file beside work", status([busy, broken]), synced, "failed", "ParseError"],
  [
    "no space for a pull",
    status([busy], {
      models: [model("a/b:c", condition("Present", "False", "DiskFull"))],
      planned: [held("room", "a/b:c")],
    }),
    synced,
    "failed",
    "DiskFull",
  ],
  [
    "a pull that is tried again",
    status([busy], {
      models: [model("a/b:c", condition("Present", "False", "HubUnreachable"))],
      planned: [held("backoff", "a/b:c")],
    }),
    synced,
    "waiting",
    "OutOfSync",
  ],
  ["this text", status(), { ...synced, sha256: "aa", revision: "r1" }, "met", "AsDesired"],
  ["this text beside a broken file", status([busy, broken]), { ...synced, sha256: "aa" }, "waiting", "OutOfSync"],
  ["another text by now", status([busy]), { ...synced, sha256: "bb" }, "failed", "Superseded"],
  ["this text as another revision", status(), { ...synced, sha256: "aa", revision: "r2" }, "failed", "Superseded"],
  ["a revision to come", status(), { ...synced, revision: "r2" }, "waiting", "NotApplied"],
  ["no file at all", status([], { applied: null }), { ...synced, revision: "r2" }, "waiting", "NotApplied"],
  ["ready while at work", status([busy]), { for: "ready" }, "met", "Serving"],
  ["starting", status([condition("Ready", "False", "Starting")]), { for: "ready" }, "waiting", "Starting"],
  ["no engine", status([condition("Ready", "False", "EngineMissing")]), { for: "ready" }, "failed", "EngineMissing"],
  ["no such model", status(), of("a/b:c"), "failed", "NotFound"],
  [
    "a model that is loaded on demand, by its name in other letters",
    status([busy], { models: [model("a/b:C", condition("Ready", "True", "OnDemand"))] }),
    of("A/b:c"),
    "met",
    "OnDemand",
  ],
  [
    "a model that is being pulled",
    status([], { models: [model("a/b:c", condition("Ready", "False", "Pulling"))] }),
    of("a/b:c"),
    "waiting",
    "Pulling",
  ],
  [
    "a model whose pull has stalled",
    status([], {
      models: [
        model("a/b:c", condition("Ready", "False", "RepoNotFound"), condition("Present", "False", "RepoNotFound")),
      ],
      planned: [held("stalled", "a/b:c")],
    }),
    of("a/b:c"),
    "failed",
    "RepoNotFound",
  ],
  [
    "a model beside a stalled one",
    status([stalled], {
      models: [model("a/b:c", condition("Ready", "False", "Pulling"))],
      planned: [held("stalled", "a/d:e")],
    }),
    of("a/b:c"),
    "waiting",
    "Pulling",
  ],
  [
    "a model that does not load",
    status([], { models: [model("a/b:c", condition("Ready", "False", "LoadFailing"))] }),
    of("a/b:c"),
    "failed",
    "LoadFailing",
  ],
];

for (const [what, body, goal, state, reason] of cases)
  test(`${what}: ${state}`, () => {
    const verdict = verdictOf(body, goal);
    assert.deepEqual([verdict.state, verdict.reason], [state, reason]);
    assert.match(verdict.message, /^[A-Z].*\.$/);
  });
