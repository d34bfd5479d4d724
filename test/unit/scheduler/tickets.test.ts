// The book of those who wait, and their lines: counts, limits, order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Lease } from "../../../src/scheduler/leases.ts";
import { createLines, type Lines } from "../../../src/scheduler/queues.ts";
import { createWaitingBook, type WaitingBook } from "../../../src/scheduler/tickets.ts";

const staying = new AbortController().signal;

interface Setting {
  readonly book: WaitingBook;
  readonly lines: Lines;
  readonly inFlight: Map<string, number>;
  time: number;
  left: number;
}

function start(limit = 256): Setting {
  const setting: Setting = {
    inFlight: new Map(),
    time: 1_000,
    left: 0,
    lines: createLines(() => setting.left++),
    book: createWaitingBook({ limit, inFlight: (id) => setting.inFlight.get(id) ?? 0, now: () => setting.time }),
  };
  return setting;
}

/** A request in line, and its number once it is let in. */
function join(setting: Setting, id: string, signal = staying): Promise<number> {
  const ticket = setting.book.enter(id, "load");
  return setting.lines.join(ticket, signal).then(() => ticket.number);
}

function letIn({ lines }: Setting, id: string): void {
  lines.take(id)?.resolve({} as Lease);
}

test("first come, first served, also after waiting for something else", async () => {
  const setting = start();
  const sized = setting.book.enter("a", "size");
  const others = [join(setting, "a"), join(setting, "a")];
  const late = setting.lines.join(sized, staying);
  letIn(setting, "a");
  await late;
  letIn(setting, "a");
  letIn(setting, "a");
  assert.deepEqual(await Promise.all(others), [2, 3]);
  assert.deepEqual(setting.book.report(), []);
});

test("models are loaded in the order in which they began to wait for it; one that had its turn goes to the end", () => {
  const { lines, book } = start();
  for (const id of ["a", "b", "a", "c"]) {
    void lines.join(book.enter(id, "load"), staying);
    lines.rank(id);
  }
  assert.deepEqual(lines.inOrder(), ["a", "b", "c"]);
  lines.take("a");
  lines.rank("a");
  assert.deepEqual(lines.inOrder(), ["b", "c", "a"]);
});

test("what they wait for is told by model, those who wait longest first", () => {
  const setting = start();
  const { book, lines } = setting;
  void join(setting, "a");
  setting.time += 500;
  void join(setting, "a");
  void join(setting, "b");
  lines.waitFor("b", "room");
  setting.time += 500;
  assert.deepEqual(book.report(), [
    { model: "a", requests: 2, oldestMs: 1_000, for: "load" },
    { model: "b", requests: 1, oldestMs: 500, for: "room" },
  ]);
});

test("whoever leaves is out at once, and whoever is refused too", async () => {
  const setting = start();
  const leaving = new AbortController();
  const gone = join(setting, "a", leaving.signal);
  const refused = join(setting, "b");
  leaving.abort();
  setting.lines.reject("b", () => new GatewayError("model_not_found", "no b"));
  assert.deepEqual([setting.book.report(), setting.lines.inOrder(), setting.left], [[], [], 1]);
  await assert.rejects(gone, { code: "cancelled" });
  await assert.rejects(refused, { code: "model_not_found" });
});

test("a model has so many requests, waiting and under way together; other models have their own number", () => {
  const setting = start(3);
  setting.inFlight.set("a", 1);
  const [first] = [setting.book.enter("a", "load"), setting.book.enter("a", "load")];
  assert.throws(() => setting.book.enter("a", "load"), {
    code: "busy",
    retryAfterMs: 5_000,
    message: /^3 requests for a/,
  });
  setting.book.enter("b", "load");
  first?.leave();
  first?.leave();
  setting.book.requireRoom("a");
  setting.inFlight.set("a", 2);
  assert.throws(() => setting.book.requireRoom("a"), { code: "busy" });
});
