// A start as a person reads it, and who gets JSON lines instead.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { WriteStream } from "node:tty";
import type { Gateway } from "../../../src/app/gateway.ts";
import { isForPrograms } from "../../../src/cli/log-format.ts";
import { createStartScreen } from "../../../src/cli/start-screen.ts";

function screenOn(isTTY: boolean): {
  readonly written: string[];
  readonly screen: ReturnType<typeof createStartScreen>;
} {
  const written: string[] = [];
  const stream = { isTTY, columns: 80, hasColors: () => false, write: (text: string) => written.push(text) };
  return { written, screen: createStartScreen(stream as unknown as WriteStream) };
}

const key = "model/acme/a:Q8_0";
const event = (type: string, data: object) => ({ id: "1", at: "", type: `action.${type}`, data: { key, ...data } });
const events = [
  event("started", { message: "pull acme/a:Q8_0" }),
  event("progress", { completed: 0, total: 0 }),
  event("progress", { completed: 1e9, total: 4e9, bytesPerSecond: 1e8, secondsLeft: 30 }),
  event("finished", { message: "pull acme/a:Q8_0", ms: 40_000 }),
  event("finished", { key: "preset", message: "write router.preset.ini", ms: 3 }),
  event("failed", { key: "router", message: "start the router" }),
];

test("a bar while bytes come in, then a line over it; a failure is the log's", () => {
  const { written, screen } = screenOn(true);
  for (const each of events) screen.action(each);
  assert.deepEqual(written, [
    "\r\u001b[K[######                  ] 25% 1.00 GB of 4.00 GB 100 MB/s 30s left pull acme/a",
    "\r\u001b[K✓ pull acme/a:Q8_0  40.0 s\n",
    "\r\u001b[K✓ write router.preset.ini\n",
  ]);
});

test("as text that is no terminal: lines alone", () => {
  const { written, screen } = screenOn(false);
  for (const each of events) screen.action(each);
  screen.ready({ url: "http://127.0.0.1:8484" } as Gateway, "/state/gateway.yaml", null);
  assert.equal(
    written.join(""),
    `pull acme/a:Q8_0: 20% 1.00 GB of 4.00 GB 100 MB/s 30s left
✓ pull acme/a:Q8_0  40.0 s
✓ write router.preset.ini

  Address   http://127.0.0.1:8484
  Page      http://127.0.0.1:8484/ui
  Document  /state/gateway.yaml

Ready. No model yet: add one to the document.

`,
  );
});

for (const [format, isTTY, expected] of [
  ["auto", true, false],
  ["auto", false, true],
  ["json", true, true],
  ["text", false, false],
] as const)
  test(`--log ${format} ${isTTY ? "on a terminal" : "in a pipe"}: ${expected ? "JSON" : "text"}`, () =>
    assert.equal(isForPrograms(format, { isTTY }), expected));
