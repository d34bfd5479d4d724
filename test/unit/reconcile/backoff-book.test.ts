// How often each action failed, and when it may go again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Action } from "../../../src/plan/actions.ts";
import { createBackoffBook } from "../../../src/reconcile/pacing.ts";

const pull = (model: string): Action => ({
  kind: "model.pull",
  key: `model/${model}`,
  model,
  revision: undefined,
  reason: "ModelAbsent",
  message: "",
  disrupts: [],
});
const router = (kind: "router.start" | "router.restart"): Action => ({
  kind,
  key: "router",
  reason: "RouterStopped",
  message: "",
  disrupts: [],
});
const offline = new GatewayError("checksum_mismatch", "other bytes");

test("each failure waits twice as long; the fifth is the last", () => {
  const book = createBackoffBook(() => 1_000);
  const entries = Array.from({ length: 5 }, () => book.failed(pull("a/b:c"), offline));
  assert.deepEqual(
    entries.map((entry) => [entry.failures, entry.until, entry.stalled]),
    [
      [1, 6_000, false],
      [2, 11_000, false],
      [3, 21_000, false],
      [4, 41_000, false],
      [5, 81_000, true],
    ],
  );
  assert.deepEqual([...book.entries().keys()], ["model.pull model/a/b:c"]);
  assert.equal(book.entries().get("model.pull model/a/b:c")?.reason, "ChecksumMismatch");
});

test("what lies outside is tried for ever, at most three minutes apart", () => {
  const book = createBackoffBook(() => 0);
  const entries = Array.from({ length: 9 }, () =>
    book.failed(pull("a/b:c"), new GatewayError("hub_unreachable", "no network")),
  );
  assert.ok(entries.every((entry) => !entry.stalled));
  assert.equal(entries.at(-1)?.until, 180_000);
});

test("gateways do not try again in step: by up to three tenths later", () => {
  const [early, late] = [0, 0.999].map((random) =>
    createBackoffBook(
      () => 0,
      () => random,
    ),
  );
  const busy = new GatewayError("mirror_busy", "still pulling", { retryAfterMs: 5_000 });
  assert.deepEqual([early?.failed(pull("a/b:c"), busy).until, late?.failed(pull("a/b:c"), busy).until], [5_000, 6_499]);
});

test("what a person must mend is not tried again", () => {
  const book = createBackoffBook(() => 0);
  assert.ok(book.failed(pull("a/b:c"), new GatewayError("hub_denied", "gated")).stalled);
});

test("the other side's own wait counts where it is longer", () => {
  const book = createBackoffBook(() => 0);
  assert.equal(
    book.failed(pull("a/b:c"), new GatewayError("hub_rate_limited", "slow down", { retryAfterMs: 60_000 })).until,
    60_000,
  );
  assert.equal(
    book.failed(pull("a/b:d"), new GatewayError("hub_rate_limited", "slow down", { retryAfterMs: 1 })).until,
    5_000,
  );
});

test("a success ends what was held against the same thing, and only that", () => {
  const book = createBackoffBook(() => 0);
  book.failed(router("router.start"), new GatewayError("engine_failed", "x"));
  book.failed(router("router.restart"), new GatewayError("engine_failed", "x"));
  // A tag may have blanks: its key ends like another one.
  book.failed(pull("a/b:the router"), offline);
  book.succeeded(router("router.restart"));
  assert.deepEqual([...book.entries().keys()], ["model.pull model/a/b:the router"]);
  book.succeeded(pull("a/b:the router"));
  assert.equal(book.entries().size, 0);
});

test("a reset forgets everything", () => {
  const book = createBackoffBook(() => 0);
  book.failed(pull("a/b:c"), offline);
  book.reset();
  assert.equal(book.entries().size, 0);
});
