// Which events are kept, and what a reader gets that comes back with an id.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createJournal, type Journal } from "../../../src/status/journal.ts";

function journalWith(events: number): Journal {
  const journal = createJournal(() => 0, "run");
  for (let n = 1; n <= events; n++) journal.record("document", { n });
  return journal;
}

/** `TYPE ID` of each. */
function told(journal: Journal, since: string): string[] {
  return journal.since(since).map(({ type, id }) => `${type} ${id}`);
}

describe("the journal", () => {
  it("numbers events within its run", () => {
    const journal = journalWith(3);
    assert.equal(journal.lastId(), "run-3");
    assert.deepEqual(told(journal, "run-1"), ["document run-2", "document run-3"]);
    assert.deepEqual(told(journal, "run-3"), []);
    assert.deepEqual(told(journal, "0"), ["document run-1", "document run-2", "document run-3"]);
  });

  it("tells of a reset where the id is of another run, or none", () => {
    const journal = journalWith(2);
    // What a run before, an earlier version and a mistake would send; `run-9` is yet to come.
    for (const id of ["before-1", "1", "", "run-", "run-x", "run-1.5", "run-9", "running-1", `run-${"9".repeat(40)}`])
      assert.deepEqual(told(journal, id), ["reset run-0", "document run-1", "document run-2"], id);
  });

  it("tells of a reset where events after the id are no longer kept, and then of all that are", () => {
    const journal = journalWith(1_500);
    assert.deepEqual(told(journal, "run-500").slice(0, 1), ["document run-501"]);
    for (const id of ["run-499", "run-1", "0", "before-1499"]) {
      const [first, second, ...others] = told(journal, id);
      assert.deepEqual([first, second, others.length], ["reset run-500", "document run-501", 999], id);
    }
    // Its id leads to what follows it, and to no second reset.
    assert.deepEqual(told(journal, "run-500").length, 1_000);
  });

  it("keeps of one action's progress only the latest, so that nothing else goes for it", () => {
    const journal = journalWith(2);
    for (let bytes = 0; bytes < 5_000; bytes++) {
      journal.record("action.progress", { bytes }, "a");
      if (bytes % 2 === 0) journal.record("action.progress", { bytes }, "b");
    }
    journal.record("action.finished", {});
    const events = journal.since("run-0");
    assert.deepEqual(
      events.map(({ type, data }) => [type, data]),
      [
        ["document", { n: 1 }],
        ["document", { n: 2 }],
        ["action.progress", { bytes: 4_998 }],
        ["action.progress", { bytes: 4_999 }],
        ["action.finished", {}],
      ],
    );
    // A reader in the middle of it has missed nothing that counts.
    assert.deepEqual(
      journal.since("run-1000").map(({ type }) => type),
      ["action.progress", "action.progress", "action.finished"],
    );
  });

  it("calls back at each event, also at progress that is not kept", () => {
    const journal = journalWith(0);
    const seen: string[] = [];
    const stop = journal.follow(({ id }) => void seen.push(id));
    for (let n = 0; n < 3; n++) journal.record("action.progress", {}, "a");
    stop();
    journal.record("action.progress", {}, "a");
    assert.deepEqual(seen, ["run-1", "run-2", "run-3"]);
  });
});
