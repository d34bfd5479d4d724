// The event hub: who is called, with what, and in which order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createEvents } from "../../../src/app/events.ts";

test("listeners of an event are called in the order in which they were added, others not", () => {
  const events = createEvents();
  const calls: string[] = [];
  events.on("documentChanged", ({ generation }) => void calls.push(`first ${generation}`));
  events.on("retried", () => void calls.push("retried"));
  events.on("documentChanged", ({ generation }) => void calls.push(`second ${generation}`));
  events.emit({ type: "documentChanged", generation: 7 });
  events.emit({ type: "loadFailed", id: "nobody listens" });
  assert.deepEqual(calls, ["first 7", "second 7"]);
});

test("an event that a listener emits is delivered before the next listener of the outer one", () => {
  const events = createEvents();
  const calls: string[] = [];
  events.on("engineFound", () => events.emit({ type: "retried" }));
  events.on("engineFound", () => void calls.push("engineFound"));
  events.on("retried", () => void calls.push("retried"));
  events.emit({ type: "engineFound" });
  assert.deepEqual(calls, ["retried", "engineFound"]);
});
