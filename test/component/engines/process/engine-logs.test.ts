// The engines' output in files: by model, bounded, without keys, and followed without a gap.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createEngineLogs, type LogLine, logText } from "../../../../src/engines/process/engine-logs.ts";
import { createLogFiles } from "../../../../src/engines/process/log-files.ts";
import { scratchFolder } from "../../../support/scratch.ts";

async function logsIn(t: TestContext, mostBytes = 1 << 20) {
  const root = await scratchFolder(t);
  const dir = join(root, "logs");
  const files = createLogFiles(dir, mostBytes);
  await files.open();
  let at = 0;
  const warned: string[] = [];
  const logs = createEngineLogs({ files, now: () => at++, warn: (message) => void warned.push(message) });
  return { root, dir, files, logs, warned };
}

const toLog = (log: string) => (line: string) => ({ log, line });
const textsOf = (lines: readonly LogLine[]): string[] => lines.map(({ text }) => text.slice(25));

test("each log has its own file, which only its owner can read; lines may come in pieces, from two pipes", async (t) => {
  const { dir, logs } = await logsIn(t);
  const print = logs.outputOf((line) => ({ log: line.startsWith("a") ? "acme/alpha:Q8_0" : "router", line }));
  print("alpha on", "stdout");
  print("router 1\n", "stderr");
  print("e\n\nalpha two\nunfini", "stdout");
  assert.deepEqual(textsOf(await logs.read("acme/alpha:Q8_0", 100_000)), ["alpha one", "alpha two"]);
  assert.deepEqual(await readdir(dir), ["acme--alpha--Q8_0.log", "router.log"]);
  assert.equal((await stat(join(dir, "router.log"))).mode & 0o777, 0o600);
  assert.equal((await stat(dir)).mode & 0o777, 0o700);
  assert.deepEqual(await logs.names(), ["acme/alpha:Q8_0", "router"]);
  assert.deepEqual(await logs.read("acme/none:Q8_0", 100_000), []);
  const all = await logs.read(null, 100_000);
  assert.deepEqual(textsOf(all), ["router 1", "alpha one", "alpha two"]);
  assert.equal(logText(all, 1, true), "1970-01-01T00:00:00.002Z acme/alpha:Q8_0 alpha two\n");
  assert.equal(logText(all, 0, false), "");
  assert.deepEqual(textsOf(await logs.read(null, 1)), ["router 1", "alpha two"]);
});

test("a file has one earlier file, and both are bounded", async (t) => {
  const { dir, logs } = await logsIn(t, 1_000);
  const print = logs.outputOf(toLog("router"));
  for (let line = 0; line < 100; line++) {
    print(`line ${line}\n`, "stdout");
    await logs.flush();
  }
  assert.deepEqual(await readdir(dir), ["router.log", "router.log.1"]);
  for (const name of await readdir(dir)) assert.ok((await stat(join(dir, name))).size <= 1_000, name);
  const kept = textsOf(await logs.read("router", 100_000));
  assert.ok(kept.length > 30, `${kept.length}`);
  assert.deepEqual(
    kept,
    Array.from({ length: kept.length }, (_, index) => `line ${100 - kept.length + index}`),
  );
  // No more is read than is asked for: of both files, of one, of none.
  for (const tail of [0, 1, 3, kept.length - 1, kept.length, kept.length + 1])
    assert.deepEqual(textsOf(await logs.read("router", tail)), tail === 0 ? [] : kept.slice(-tail), `${tail}`);
});

test("a torrent is cut, and it is said how much", async (t) => {
  const { logs } = await logsIn(t, 10_000);
  const print = logs.outputOf(toLog("router"));
  const many = `${"x".repeat(99)}\n`.repeat(1_000);
  for (let chunk = 0; chunk < 50; chunk++) print(many, "stderr");
  print("x".repeat(20_000), "stdout");
  const lines = await logs.read("router", 100_000);
  const dropped = 40 * many.length;
  assert.equal(textsOf(lines).at(-1), `${dropped} characters of output were dropped`);
  assert.ok(logText(lines, Infinity, false).length <= 10_000);
});

test("no key is in it, also if it comes in two pieces", async (t) => {
  const { dir, logs } = await logsIn(t);
  logs.hide("secret-key");
  const print = logs.outputOf(toLog("router"));
  const seen: string[] = [];
  logs.follow((lines) => void seen.push(...textsOf(lines)));
  print("key=secret-key secret-", "stdout");
  await logs.flush();
  print("key\n", "stdout");
  await logs.flush();
  assert.deepEqual(seen, ["key=*** ***"]);
  assert.ok(!(await readFile(join(dir, "router.log"), "utf8")).includes("secret"));
});

test("who reads and follows in one turn misses no line, and has none twice", async (t) => {
  const { logs } = await logsIn(t);
  const print = logs.outputOf(toLog("router"));
  const printed = Array.from({ length: 200 }, (_, index) => `line ${index}`);
  const printAll = (lines: readonly string[]): void => {
    for (const [index, line] of lines.entries()) {
      print(`${line}\n`, "stdout");
      if (index % 3 === 0) void logs.flush();
    }
  };
  printAll(printed.slice(0, 100));
  const reading = logs.read("router", 100_000);
  const come: string[] = [];
  logs.follow((lines) => void come.push(...textsOf(lines)));
  printAll(printed.slice(100));
  const kept = textsOf(await reading);
  await logs.flush();
  assert.equal(kept.length, 100);
  assert.deepEqual([...kept, ...come], printed);
});

test("a folder that was moved away is not made again; it is reported once", async (t) => {
  const { root, dir, logs, warned } = await logsIn(t);
  const print = logs.outputOf(toLog("router"));
  await rename(dir, `${dir}.away`);
  for (const text of ["one\n", "two\n"]) {
    print(text, "stdout");
    await logs.flush();
  }
  assert.deepEqual(await readdir(root), ["logs.away"]);
  assert.deepEqual(warned, ["the engines' output could not be written"]);
  await rename(`${dir}.away`, dir);
  print("three\n", "stdout");
  assert.deepEqual(textsOf(await logs.read("router", 100_000)), ["three"]);
});

test("of many logs a start keeps those that were written last", async (t) => {
  const dir = join(await scratchFolder(t), "logs");
  await mkdir(dir);
  for (let index = 0; index < 103; index++) {
    const path = join(dir, `acme--m${index}--Q8_0.log`);
    await writeFile(path, "");
    await writeFile(`${path}.1`, "");
    await utimes(path, index, index);
  }
  await createLogFiles(dir, 100).open();
  const left = await readdir(dir);
  assert.equal(left.length, 200);
  for (const gone of [0, 1, 2]) assert.ok(!left.includes(`acme--m${gone}--Q8_0.log`));
});
