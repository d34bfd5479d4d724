// When a pull is given up for its client: by the clock, and by what came in.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createPullPatience, type PullPatience } from "../../../src/commands/pull-patience.ts";

const minute = 60_000;
let time = 0;

/** A try, as a pull tells of it: it resolves, then goes over each file with what is here of it, then gets on. */
function attempt(patience: PullPatience, files: Readonly<Record<string, readonly number[]>>): void {
  patience.progressed({ phase: "resolving", completed: 0, total: 0, file: "", fileCompleted: 0 });
  let before = 0;
  for (const [file, all] of Object.entries(files)) {
    for (const fileCompleted of all)
      patience.progressed({
        phase: "downloading",
        completed: before + fileCompleted,
        total: 900,
        file,
        fileCompleted,
      });
    before += all.at(-1) ?? 0;
  }
  patience.failed();
}

function begin(): PullPatience {
  time = 0;
  return createPullPatience(() => time);
}

test("nothing has come: after the third try", () => {
  const patience = begin();
  for (const left of [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0]) {
    attempt(patience, {});
    time += 60 * minute;
    assert.equal(patience.leftMs(), left);
  }
});

test("a part has come: ten minutes after the last byte, however many tries go over what is here", () => {
  const patience = begin();
  attempt(patience, { one: [0, 300], two: [0, 50] });
  assert.equal(patience.leftMs(), 10 * minute);
  for (let tries = 1; tries <= 9; tries++) {
    time += minute;
    // The last bytes of a connection that broke may be lost.
    attempt(patience, { one: [300], two: [40] });
    assert.equal(patience.leftMs(), (10 - tries) * minute);
  }
  time += 2 * minute;
  assert.equal(patience.leftMs(), 0);
});

test("a byte more begins the ten minutes again, also of a file that had to begin anew", () => {
  const patience = begin();
  attempt(patience, { one: [0, 300] });
  for (const all of [[300, 301], [0], [0, 5]]) {
    time += 9 * minute;
    const before = patience.leftMs();
    attempt(patience, { one: all });
    assert.equal(patience.leftMs(), all.length === 2 ? 10 * minute : before);
    if (all.length === 1) time -= 9 * minute;
  }
});

test("of a file that is imported", () => {
  const patience = begin();
  patience.progressed({ phase: "importing", completed: 5, total: 10 });
  patience.failed();
  assert.equal(patience.leftMs(), 10 * minute);
});
