// The plan whole, held against what runs: the steps are the actions that a machine takes, and the end is where it comes to rest.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { runs } from "./random-worlds.ts";
import { act, begun, endsAsPlanned, essence, histories, named, wholeOf } from "./whole-histories.ts";

test("a plan that is executed action by action ends where it says", () => endsAsPlanned(150));

test("what the loop does, one action after the other, is what the plan shows", () => {
  fc.assert(
    fc.property(histories, (history) => {
      const simulated = begun(history);
      const { steps, end } = wholeOf(simulated);
      const done = act(simulated);
      assert.deepEqual(
        steps.map(({ action }) => named(action)),
        done.map(named),
      );
      assert.deepEqual(essence(end.world.observed), essence(simulated.observe()));
    }),
    runs,
  );
});
