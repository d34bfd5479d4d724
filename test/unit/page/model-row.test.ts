// A model's row: desired beside observed beside next step.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Desired, StatusBody } from "../../../src/client/index.ts";
import { type Model, modelRows } from "../../../src/page/model-row.ts";

const runtime = {
  bytes: 10,
  contextLength: 4096,
  state: "unloaded",
  pid: null,
  memoryBytes: null,
  need: null,
  takes: null,
  evicts: [],
};
const modelOf = (id: string, rest: Partial<Model> = {}): Model => ({
  id,
  desired: true,
  conditions: [],
  runtime,
  ...rest,
});
const statusOf = (models: Model[], rest: object = {}) =>
  ({ models, running: [], planned: [], waiting: [], inFlight: {}, ...rest }) as unknown as StatusBody;
const desired = {
  document: {
    version: 1,
    context: { default: 8192 },
    models: ["acme/a:Q8_0", { id: "acme/b:Q8_0", ctxSize: 512, pinned: true }],
  },
} as unknown as Desired;

test("what the document wants of it", () => {
  const models = [modelOf("acme/a:Q8_0"), modelOf("acme/b:Q8_0"), modelOf("acme/c:Q8_0", { desired: false })];
  assert.deepEqual(
    modelRows(statusOf(models), desired).map(({ desiredText }) => desiredText),
    ["context 8192", "context 512, pinned", "not named"],
  );
});

test("what comes next: an action, a held one, a wait, or its first request", () => {
  const next = (model: Model, rest: object = {}): string | undefined =>
    modelRows(statusOf([model], rest), desired)[0]?.next;
  const id = "acme/a:Q8_0";
  const action = { key: id, kind: "model.pull", model: id, message: "pull it", disrupts: [] };
  assert.equal(next(modelOf(id)), "loads with the first request");
  assert.equal(
    next(modelOf(id, { runtime: { ...runtime, evicts: ["acme/b:Q8_0"] } })),
    "loads with the first request, which unloads acme/b:Q8_0",
  );
  assert.equal(next(modelOf(id, { runtime: { ...runtime, evicts: null } })), "does not fit beside the pinned models");
  assert.equal(next(modelOf(id, { runtime: { ...runtime, state: "loading" } })), "answers once it is loaded");
  assert.equal(
    next(modelOf(id), {
      running: [
        { ...action, progress: { phase: "p", completed: 1000, total: 2000, bytesPerSecond: 100, secondsLeft: 10 } },
      ],
    }),
    "pull it: 1.00 kB of 2.00 kB 100 B/s 10s left",
  );
  assert.equal(
    next(modelOf(id), { planned: [{ ...action, held: "backoff", because: "again in 5 s" }] }),
    "pull it, held: again in 5 s",
  );
  assert.equal(
    next(modelOf(id), { waiting: [{ model: id, requests: 2, oldestMs: 1, for: "load" }] }),
    "2 requests wait for its load",
  );
  const failing = modelOf(id, {
    conditions: [
      {
        type: "Loaded",
        status: "False",
        reason: "LoadFailing",
        message: "no",
        observedGeneration: 1,
        lastTransitionTime: "",
      },
    ],
  });
  const [row] = modelRows(statusOf([failing]), desired);
  assert.deepEqual([row?.state, row?.tone], ["LoadFailing", "bad"]);
});
