// How events change what the page shows.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusBody } from "../../../src/client/index.ts";
import { afterEvent, type Live, nothingYet } from "../../../src/page/live-state.ts";

const at = "2027-03-01T12:00:00.000Z";
const running = {
  key: "model/acme/a:Q8_0",
  kind: "model.pull",
  message: "pull acme/a:Q8_0",
  progress: null,
} as unknown as StatusBody["running"][number];
const live: Live = {
  ...nothingYet,
  status: { running: [running], inFlight: {}, waiting: [] } as unknown as StatusBody,
};
const eventOf = (type: string, data: object) => ({ id: "e-1", type, data: { at, ...data } });

test("progress and counts are taken as they are, and nothing is read again", () => {
  const progress = { phase: "download", completed: 5, total: 10 };
  const progressed = afterEvent(
    live,
    eventOf("action.progress", { key: running.key, kind: running.kind, ...progress }),
  );
  assert.deepEqual([progressed.isStale, progressed.live.status?.running[0]?.progress], [false, progress]);
  const unknown = afterEvent(live, eventOf("action.progress", { key: "other", kind: "model.pull", ...progress }));
  assert.equal(unknown.isStale, true, "an action that is not known yet");

  const counts = { inFlight: { a: 2 }, waiting: [{ model: "b", requests: 1, for: "load" }], used: ["a"] };
  const counted = afterEvent(live, eventOf("requests", counts));
  assert.deepEqual(
    [counted.isStale, counted.live.status?.inFlight, counted.live.lastUsed.get("a")],
    [false, { a: 2 }, at],
  );
  assert.equal(counted.live.status?.waiting[0]?.requests, 1);
});

test("what has happened is told, the newest first, and bounded", () => {
  const told = (type: string, data: object) => {
    const { live: next, isStale } = afterEvent(live, eventOf(type, data));
    return [isStale, ...next.activity.map(({ text, isFailure }) => [text, isFailure])];
  };
  assert.deepEqual(told("action.finished", { message: "pull a" }), [true, ["pull a", false]]);
  assert.deepEqual(told("action.failed", { kind: "model.pull", message: "no such file", code: "hub_not_found" }), [
    true,
    ["model.pull failed: no such file", true],
  ]);
  assert.deepEqual(told("action.failed", { kind: "model.pull", message: "left", code: "cancelled" }).at(-1), [
    "model.pull failed: left",
    false,
  ]);
  assert.deepEqual(told("model", { model: "a", data: { status: "loaded" } }).at(-1), ["a is loaded", false]);
  assert.deepEqual(told("model", { model: "a", data: { status: "loading" } }), [true]);
  assert.deepEqual(told("condition", { subject: "gateway" }), [true]);
  let many = live;
  for (let generation = 1; generation <= 100; generation++)
    many = afterEvent(many, eventOf("document", { generation })).live;
  assert.equal(many.activity.length, 40);
  assert.equal(many.activity[0]?.text, "generation 100 of the document");
});
