// A reload that nobody has asked for leaves answers alone; every other one waits for them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Router } from "../../../../src/engines/llama/router.ts";
import type { ActionRun } from "../../../../src/execute/executor.ts";
import { routerHandlers } from "../../../../src/execute/router-actions.ts";

const inputs = { preset: "", cache: "", repos: [] };
const run: ActionRun = { signal: new AbortController().signal, report: () => undefined };

function scene(inFlight: ReadonlyMap<string, number>): {
  readonly handlers: ReturnType<typeof routerHandlers>;
  readonly done: string[];
} {
  const done: string[] = [];
  const router: Pick<Router, "reload"> = { reload: async () => void done.push("reload") };
  const handlers = routerHandlers({
    router: router as Router,
    drainer: {
      inFlight: () => inFlight,
      drain: async () => {
        done.push("drain");
        return () => void done.push("let in");
      },
    },
    binary: () => null,
    inputs: async () => inputs,
    seenInputs: () => inputs,
  });
  return { handlers, done };
}

function reload(yields: boolean): Parameters<ReturnType<typeof routerHandlers>["router.reload"]>[0] {
  const base = { key: "router", reason: "PresetChanged", message: "", disrupts: [] };
  return { ...base, kind: "router.reload", changes: ["acme/x:Q8_0"], yields };
}

test("it is given up where an answer is under way, and nobody is kept waiting for it", async () => {
  const { handlers, done } = scene(new Map([["acme/x:Q8_0", 1]]));
  await assert.rejects(async () => handlers["router.reload"](reload(true), run), { code: "cancelled" });
  assert.deepEqual(done, []);
  await handlers["router.reload"](reload(false), run);
  assert.deepEqual(done, ["drain", "reload", "let in"]);
});

test("it is made where none is", async () => {
  const { handlers, done } = scene(new Map());
  await handlers["router.reload"](reload(true), run);
  assert.deepEqual(done, ["drain", "reload", "let in"]);
});
