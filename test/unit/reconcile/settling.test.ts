// Changes of the document that come in one breath are told to a running router as one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { plan } from "../../../src/plan/plan.ts";
import { createSettling } from "../../../src/reconcile/pacing.ts";
import { desiredFrom, silenceLimitMs, world } from "../plan/world.ts";

test("each change puts it off by a tenth of a second, the first of them waits two seconds at most", () => {
  let now = 1_000_000;
  const settling = createSettling(() => now);
  assert.equal(settling.settledAt(), 0);
  const seen: number[] = [];
  for (let count = 0; count < 60; count++, now += 50) {
    settling.changed();
    seen.push(settling.settledAt() - 1_000_000);
  }
  assert.deepEqual(seen.slice(0, 3), [100, 150, 200]);
  // Those that come after begin a burst of their own.
  assert.deepEqual([seen[39], seen[40], seen[41]], [2_000, 2_000, 2_150]);
});

test("meanwhile the preset is not written for a router that has to end a model for it; any other has it at once", () => {
  const desired = desiredFrom({ models: [{ id: "acme/a:Q8_0", ctxSize: 4096 }] });
  const files = ["acme/a/a-Q8_0.gguf"];
  const context = { now: 1_000, backoff: new Map(), silenceLimitMs, settledAt: 1_050 };
  const loaded = world(desired, { files, preset: "", router: { loaded: ["acme/a:Q8_0"] } });
  const running = plan(desired, loaded, context);
  assert.deepEqual(
    [running.actions, running.held.map(({ action, why, until }) => [action.kind, why, until])],
    [[], [["preset.write", "settling", 1_050]]],
  );
  const stopped = world(desired, { files, preset: "", router: { phase: "stopped" } });
  const idle = world(desired, { files, preset: "" });
  for (const { actions } of [
    plan(desired, loaded, { ...context, now: 1_050 }),
    plan(desired, idle, context),
    plan(desired, stopped, context),
  ])
    assert.deepEqual(
      actions.map(({ kind }) => kind),
      ["preset.write"],
    );
});
