// Disk space in the plan: a pull that found the disk too full is held with what is missing, and tried again once there is space.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { type Action, backoffKey } from "../../../src/plan/actions.ts";
import type { Knowable } from "../../../src/plan/observed.ts";
import { plan } from "../../../src/plan/plan.ts";
import { reserveBytes } from "../../../src/plan/room.ts";
import { createBackoffBook } from "../../../src/reconcile/pacing.ts";
import { desiredFrom, known, silenceLimitMs, world } from "./world.ts";

const [a, b] = ["acme/a:Q8_0", "acme/b:Q8_0"] as const;
const pullOfA: Pick<Action, "kind" | "key"> = { kind: "model.pull", key: `model/${a}` };
const gib = 1024 ** 3;

/** Models whose pull is started, and what holds the others, after the pull of `a` has failed. */
function planned(freeBytes: Knowable<number>, error: GatewayError): { started: string[]; held: string[] } {
  const desired = desiredFrom({ models: [a, b] });
  const book = createBackoffBook(() => 0);
  book.failed(pullOfA as Action, error);
  assert.ok(book.entries().has(backoffKey(pullOfA)));
  const found = plan(
    desired,
    { ...world(desired, {}), freeBytes },
    { now: 0, backoff: book.entries(), silenceLimitMs },
  );
  return {
    started: found.actions.flatMap((action) => (action.kind === "model.pull" ? action.model : [])),
    held: found.held.map(({ action, why }) => `${action.key} ${why} ${action.reason}: ${action.message}`),
  };
}

const full = new GatewayError("disk_full", "too full", { neededBytes: 11 * gib });

test("what does not fit is held with how much is missing, and others go on", () => {
  const { started, held } = planned(known(10 * gib + reserveBytes), full);
  assert.deepEqual([started, held.length], [[b], 1]);
  assert.match(
    held[0] ?? "",
    /^model\/acme\/a:Q8_0 room DiskFull: pull acme\/a:Q8_0: it needs 11,264 MiB and 256 MiB stay free; .* 1,024 MiB are missing$/,
  );
});

test("it is tried as soon as it fits; without a number it is tried again later", () => {
  assert.deepEqual(planned(known(11 * gib + reserveBytes), full), { started: [a, b], held: [] });
  const unknown = new GatewayError("disk_full", "too full");
  for (const found of [planned(known(0), unknown), planned({ state: "unknown", why: "" }, full)]) {
    assert.deepEqual(found.started, [b]);
    assert.match(found.held.join(), /^model\/acme\/a:Q8_0 (backoff|stalled)/);
  }
});
