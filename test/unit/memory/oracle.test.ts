// What llama-fit-params prints, and what is asked of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { parseDevices } from "../../../src/engines/llama/devices.ts";
import { createEstimates } from "../../../src/memory/estimates.ts";
import { bytesOf } from "../../../src/memory/need.ts";
import { createOracle, fittedArguments, parseRows } from "../../../src/memory/oracle.ts";

const mebibyte = 1024 * 1024;
const gibibyte = 1024 * mebibyte;

test("rows by device, in MiB", () => {
  const parts = (model: number, context: number, compute: number) => ({
    model: model * mebibyte,
    context: context * mebibyte,
    compute: compute * mebibyte,
  });
  assert.deepEqual(
    [...parseRows("loading 1 2\nCUDA0 4000 512 300 \nHost 92 0 14 \n")],
    [
      ["CUDA0", parts(4000, 512, 300)],
      ["Host", parts(92, 0, 14)],
    ],
  );
  assert.equal(parseRows("error: no such file").size, 0);
});

test("devices as llama-server lists them", () => {
  assert.deepEqual(parseDevices("Available devices:\n  (none)\n"), []);
  assert.deepEqual(parseDevices("Available devices:\n  CUDA0: NVIDIA RTX (x) (24135 MiB, 23000 MiB free)\n"), [
    { name: "CUDA0", totalBytes: 24_135 * mebibyte, freeBytes: 23_000 * mebibyte },
  ]);
});

test("the engine's own choice, with its quotes", () => {
  assert.deepEqual(fittedArguments('log\n-c 8192 -ngl 20 -ts 3,2 -ot "blk 3=CPU"\n'), [
    ..."-c 8192 -ngl 20 -ts 3,2 -ot".split(" "),
    "blk 3=CPU",
  ]);
});

test("what is not set and does not fit is estimated as the engine would choose it", async () => {
  const asked: string[] = [];
  const answers = new Map([
    ["--model a --no-repack --fit-print on", "CUDA0 9000 0 0"],
    ["--model a", "-c 4096 -ngl 20"],
    ["--model a -c 4096 -ngl 20 --no-repack --fit-print on", "CUDA0 6000 0 0\nHost 3000 0 0"],
  ]);
  const oracle = createOracle({
    run: async (args) => {
      asked.push(args.join(" "));
      return answers.get(args.join(" ")) ?? "";
    },
    totals: async () => new Map([["CUDA0", 8 * gibibyte]]),
  });
  const question = { key: "", runs: [["--model", "a"]], files: [], isFitted: true };
  assert.deepEqual(
    [...bytesOf(await oracle(question))],
    [
      ["CUDA0", 6000 * mebibyte],
      ["Host", 3000 * mebibyte],
    ],
  );
  assert.deepEqual(asked, [...answers.keys()]);
  assert.deepEqual([...bytesOf(await oracle({ ...question, isFitted: false }))], [["CUDA0", 9000 * mebibyte]]);
});

test("of what cannot be understood the beginning is told", async () => {
  const oracle = createOracle({ run: async () => `garbage ${"x".repeat(100_000)}`, totals: async () => new Map() });
  const question = { key: "", runs: [["--model", "a"]], files: [], isFitted: false };
  await assert.rejects(
    oracle(question),
    ({ message }: Error) => /sizes: garbage x+$/.test(message) && message.length < 300,
  );
});

test("what has failed is asked about again after a backoff; what the engine refuses is not", async () => {
  let now = 0;
  let outcome: string | GatewayError = new GatewayError("engine_failed", "spawn EAGAIN");
  const estimates = createEstimates({
    book: { get: () => ({ estimate: null, measured: null }), note: () => undefined, close: async () => undefined },
    run: async () => {
      if (typeof outcome === "string") return outcome;
      throw outcome;
    },
    totals: async () => new Map(),
    now: () => now,
  });
  estimates.use({ path: "/llama-fit-params", build: "1" });
  const question = { key: "a", runs: [["--model", process.execPath]], files: [], isFitted: false };
  const dueAfter = (ms: number): boolean => {
    now += ms;
    return estimates.isDue(question);
  };
  assert.equal(estimates.isDue(question), false, "it was not asked yet");
  await assert.rejects(estimates.ask(question), { message: "spawn EAGAIN" });
  assert.deepEqual([estimates.why(question), dueAfter(4_999), dueAfter(1)], ["spawn EAGAIN", false, true]);
  await assert.rejects(estimates.ask(question));
  assert.deepEqual([dueAfter(9_999), dueAfter(1)], [false, true], "twice as long each time");
  outcome = new GatewayError("engine_refused", "quantized V cache");
  await assert.rejects(estimates.ask(question));
  assert.deepEqual([estimates.isRefused(question), dueAfter(1e9)], [true, false]);
});
