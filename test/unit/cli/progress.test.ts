// How a pull's progress looks on a terminal and in a log, and amounts as people read them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { WriteStream } from "node:tty";
import { logOutput } from "../../../src/cli/log-output.ts";
import { installProgress, transferProgress } from "../../../src/cli/progress.ts";
import { bytesText, durationText, wrapped } from "../../../src/cli/text.ts";

function stream(isTTY: boolean, columns = 80): { written: string[]; stream: WriteStream } {
  const written: string[] = [];
  return { written, stream: { isTTY, columns, write: (text: string) => written.push(text) } as unknown as WriteStream };
}

const step = { completed: 1_230_000_000, total: 4_000_000_000, bytesPerSecond: 31_400_000, secondsLeft: 89 };

test("on a terminal one line is written over itself, and no wider than it", () => {
  const { written, stream: terminal } = stream(true);
  const view = transferProgress("acme/a:Q8_0", terminal);
  view.note("pulling manifest");
  view.step(step);
  view.end();
  view.end();
  assert.deepEqual(written, [
    "\r\u001b[Kacme/a:Q8_0: pulling manifest",
    "\r\u001b[K[#######                 ] 30% 1.23 GB of 4.00 GB 31.4 MB/s 1m 29s left acme/a:",
    "\n",
  ]);
});

test("on a terminal what does not fit a line is wrapped between words, and said once", () => {
  const { written, stream: terminal } = stream(true, 40);
  const view = transferProgress("acme/a:Q8_0", terminal);
  const message = "cannot reach the hub (hub.example does not resolve); is this machine online? Will retry in 20 s";
  view.note(message);
  view.note(message);
  view.end();
  assert.deepEqual(written, [
    "\r\u001b[Kacme/a:Q8_0: cannot reach the hub\n" +
      "  (hub.example does not resolve); is\n" +
      "  this machine online? Will retry in 20\n" +
      "  s\n",
  ]);
});

test("wrapping: words that are longer than a line stay whole, and without a width nothing is wrapped", () => {
  assert.equal(wrapped("a bb cccccccc d", 4), "a bb\ncccccccc\nd");
  assert.equal(wrapped("one two three", 7, "  "), "one two\n  three");
  assert.equal(wrapped("one two three", undefined), "one two three");
  assert.equal(wrapped("one two three", 0), "one two three");
});

test("the log on a terminal: what an action was and why it failed, wrapped; elsewhere JSON as it is", () => {
  const { written, stream: terminal } = stream(true, 60);
  const entry = {
    level: 40,
    time: Date.parse("2026-01-01T10:00:00"),
    what: "pull acme/a:Q8_0",
    key: "model/acme/a:Q8_0",
    error: "cannot reach the hub (hub.example does not resolve); is this machine online? Will retry in 20 s",
    msg: "an action failed",
  };
  logOutput(terminal, false).write(`${JSON.stringify(entry)}\n`);
  assert.deepEqual(written, [
    "\r\u001b[K10:00:00 warning: pull acme/a:Q8_0: cannot reach the hub\n" +
      "         (hub.example does not resolve); is this machine\n" +
      "         online? Will retry in 20 s\n",
  ]);
  const { stream: file } = stream(false);
  assert.equal(logOutput(file, true), file);
});

test("in a log there is a line at each tenth, and each word once", () => {
  const { written, stream: log } = stream(false);
  const view = transferProgress("m", log);
  for (const text of ["pulling manifest", "pulling manifest", "success"]) view.note(text);
  for (const completed of [0, 50, 100, 150, 1000])
    view.step({ completed, total: 1000, bytesPerSecond: 0, secondsLeft: null });
  view.end();
  assert.deepEqual(written, [
    "m: pulling manifest\n",
    "m: 0% 0 B of 1.00 kB\n",
    "m: 10% 100 B of 1.00 kB\n",
    "m: 100% 1.00 kB of 1.00 kB\n",
  ]);
});

test("an install in a log: each step, and of a long one each quarter", () => {
  const { written, stream: log } = stream(false);
  const tell = installProgress("llama-server", log);
  tell({ phase: "resolve", detail: "asking", done: 0, total: 0 });
  for (const done of [0, 10, 30, 99, 100]) tell({ phase: "download", detail: "a file", done, total: 100 });
  assert.deepEqual(written, [
    "llama-server: resolve asking\n",
    ...[0, 25, 75, 100].map((percent) => `llama-server: download ${percent}%\n`),
  ]);
});

test("amounts", () => {
  assert.deepEqual([0, 999, 1000, 99_940, 999_499, 999_600, 12_345_678, 5e12, 5e15].map(bytesText), [
    "0 B",
    "999 B",
    "1.00 kB",
    "99.9 kB",
    "999 kB",
    "1.00 MB",
    "12.3 MB",
    "5.00 TB",
    "5000 TB",
  ]);
  assert.deepEqual([0.2, 59, 60, 3599, 3600, 90_061].map(durationText), [
    "1s",
    "59s",
    "1m 00s",
    "59m 59s",
    "1h 00m",
    "25h 01m",
  ]);
});
