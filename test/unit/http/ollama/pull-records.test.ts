// How a pull goes on, in the records that Ollama's clients draw their bars from.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PullNews } from "../../../../src/commands/pull.ts";
import { createPullRecords } from "../../../../src/http/ollama/pull-records.ts";

const [first, second] = ["a".repeat(64), "b".repeat(64)];

function progress(digest: string, fileCompleted: number, fileTotal = 100): PullNews {
  const whole = { phase: "downloading", completed: 0, total: 0 };
  return { kind: "progress", progress: { ...whole, file: "f", digest, fileCompleted, fileTotal } };
}

function bar(digest: string, completed: number, total = 100): object {
  return { status: `pulling ${digest.slice(0, 12)}`, digest: `sha256:${digest}`, total, completed };
}

const closing = ["verifying sha256 digest", "writing manifest", "success"].map((status) => ({ status }));

test("a bar per file, ten records a second, each filled before the next and at the end", () => {
  let time = 0;
  const records = createPullRecords(() => time);
  const made: object[] = [];
  const push = (at: number, news: PullNews): void => {
    time = at;
    made.push(...records.push(news));
  };
  push(0, { kind: "waiting", message: "another pull comes first" });
  push(1, { kind: "waiting", message: "another pull comes first" });
  push(2, { kind: "progress", progress: { phase: "resolving", completed: 0, total: 0, file: "", digest: "" } });
  push(3, progress(first, 0));
  push(50, progress(first, 10));
  push(103, progress(first, 20));
  push(110, progress(first, 90));
  push(111, progress(second, 0, 50));
  push(120, progress(second, 50, 50));
  push(130, progress(second, 50, 50));
  push(131, { kind: "fetched" });
  made.push(...records.end());
  assert.deepEqual(made, [
    { status: "pulling manifest" },
    { status: "another pull comes first" },
    bar(first, 0),
    bar(first, 20),
    bar(first, 100),
    bar(second, 0, 50),
    bar(second, 50, 50),
    ...closing,
  ]);
});

test("what was here already needs no bar, and begins and ends all the same", () => {
  assert.deepEqual(createPullRecords(() => 0).end(), [{ status: "pulling manifest" }, ...closing]);
  const begun = createPullRecords(() => 0);
  assert.deepEqual([...begun.begin(), ...begun.begin()], [{ status: "pulling manifest" }]);
  assert.deepEqual(begun.end(), closing);
});

test("a try that failed is told, and the bar of the next one goes on", () => {
  let time = 0;
  const records = createPullRecords(() => (time += 1000));
  const made = [
    ...records.push(progress(first, 60)),
    ...records.push({ kind: "retrying", message: "the hub broke off; again in 5 s" }),
    ...records.push(progress(first, 0)),
  ];
  assert.deepEqual(made, [
    { status: "pulling manifest" },
    bar(first, 60),
    { status: "the hub broke off; again in 5 s" },
    bar(first, 0),
  ]);
});
