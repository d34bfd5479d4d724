// Room in the plan: pulls that would not fit are not started; those that are under way have their room already.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Action } from "../../../src/plan/actions.ts";
import { paceNow } from "../../../src/plan/pace.ts";
import { plan } from "../../../src/plan/plan.ts";
import { type Needs, reserveBytes, sizeKey } from "../../../src/plan/room.ts";
import { createSizeBook } from "../../../src/reconcile/size-book.ts";
import { desiredFrom, known, silenceLimitMs, world } from "./world.ts";

const ids = ["acme/a:Q8_0", "acme/b:Q8_0", "acme/c:Q8_0"];

function pullOf(id: string, revision?: string): Action {
  return { kind: "model.pull", key: `model/${id}`, model: id, revision, reason: "", message: "", disrupts: [] };
}

/** `started` and `room KEY`, in the order of the document. */
function planned(free: number | null, sizes: Readonly<Record<string, number>>, underWay: readonly string[] = []) {
  const desired = desiredFrom({ models: ids });
  const needs: Needs = {
    bytes: new Map(Object.entries(sizes).map(([id, bytes]) => [sizeKey(pullOf(id)), bytes])),
    underWay: new Map(underWay.map((id) => [id.startsWith("voice/") ? id : `model/${id}`, sizes[id] ?? 0])),
  };
  const observed = {
    ...world(desired, {}),
    freeBytes: free === null ? { state: "unknown" as const, why: "" } : known(free + reserveBytes),
  };
  const found = plan(desired, observed, { now: 0, backoff: new Map(), silenceLimitMs, needs });
  const name = (action: Action): string => action.key.slice("model/acme/".length, -":Q8_0".length);
  return {
    started: found.actions
      .filter(({ kind }) => kind === "model.pull")
      .map(name)
      .join(""),
    held: found.held.map(({ action, why }) => `${name(action)} ${why} ${action.reason}`),
    messages: found.held.map(({ action }) => action.message),
  };
}

const [a = "", b = "", c = ""] = ids;
const gib = 1024 ** 3;

test("what fits is started, what does not is held with how much is missing", () => {
  const { started, held, messages } = planned(10 * gib, { [a]: 11 * gib, [b]: 10 * gib });
  assert.deepEqual([started, held], ["bc", ["a room DiskFull"]]);
  assert.match(
    messages[0] ?? "",
    /^pull acme\/a:Q8_0: it needs 11,264 MiB and 256 MiB stay free; .* 1,024 MiB are missing$/,
  );
});

test("the pulls of a plan are summed, in the document's order", () => {
  const { started, held, messages } = planned(10 * gib, { [a]: 6 * gib, [b]: 6 * gib, [c]: 4 * gib });
  assert.deepEqual([started, held], ["ac", ["b room DiskFull"]]);
  assert.match(messages[0] ?? "", /pulls before it take 6,144 MiB/);
});

test("one that is under way goes on and comes first, wherever it stands", () => {
  assert.deepEqual(planned(4 * gib, { [a]: 3 * gib, [c]: 2 * gib }, [c]).held, ["a room DiskFull"]);
  assert.deepEqual(planned(1, { [c]: 2 * gib }, [c]).started, "abc");
});

test("one that no document names counts too: a voice that somebody asks for", () => {
  const voice = "voice/en_US-high-low";
  assert.deepEqual(planned(4 * gib, { [a]: 3 * gib, [voice]: 2 * gib }, [voice]).held, ["a room DiskFull"]);
  assert.equal(planned(4 * gib, { [a]: 3 * gib, [voice]: gib }, [voice]).started, "abc");
});

test("what is unknown holds nothing up", () => {
  assert.equal(planned(0, {}).started, "abc");
  assert.equal(planned(null, { [a]: 1e15 }).started, "abc");
});

test("sizes are learned from a refusal and from progress, and forgotten when it is done or somebody asks", () => {
  const book = createSizeBook();
  const pull = pullOf(a);
  const known = (): number[] => [...book.needs([]).bytes.values()];
  book.settled(pull, new GatewayError("disk_full", "", { neededBytes: 5 }));
  assert.deepEqual(known(), [5]);
  book.settled(pull, new GatewayError("disk_full", "without a number"));
  assert.deepEqual(known(), [5]);
  assert.equal(book.needs([]).bytes.get(sizeKey(pullOf(a, "another"))), undefined);
  const progress = { phase: "downloading", completed: 30, total: 100 };
  const started = { action: pull, lane: "transfer" as const, startedAt: 1, progress };
  const running = [started];
  assert.deepEqual([...book.needs(running).underWay], [[pull.key, 70]]);
  assert.deepEqual([...book.needs([{ ...started, progress: null }]).underWay], [[pull.key, 5]]);
  assert.deepEqual([...book.needs([{ ...started, startedAt: null, progress: null }]).underWay], []);
  book.settled(pull, null);
  assert.deepEqual(known(), []);
  book.settled(pull, new GatewayError("disk_full", "", { neededBytes: 5 }));
  book.forget();
  assert.deepEqual(known(), []);
});

test("a rate that was told a while ago is none by now", () => {
  const progress = { phase: "downloading", completed: 1, total: 2, bytesPerSecond: 9, secondsLeft: 1 };
  assert.equal(paceNow(progress, 1_000), progress);
  assert.deepEqual(paceNow(progress, 5_000), { ...progress, bytesPerSecond: 0, secondsLeft: null });
  assert.equal(paceNow(null, 9_000), null);
});
