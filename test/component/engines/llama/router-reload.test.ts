// A reload waits for the answers of the models that it changes.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Router } from "../../../../src/engines/llama/router.ts";
import type { ActionRun } from "../../../../src/execute/executor.ts";
import { routerHandlers } from "../../../../src/execute/router-actions.ts";
import { restingRouter } from "../../../unit/plan/world.ts";

const inputs = { preset: "", cache: "", repos: [] };
const run: ActionRun = { signal: new AbortController().signal, report: () => undefined };

test("it drains them, reloads and lets their requests in again", async () => {
  const done: string[] = [];
  const router: Pick<Router, "reload"> = { reload: async () => void done.push("reload") };
  const handlers = routerHandlers({
    router: router as Router,
    drainer: {
      drain: async () => {
        done.push("drain");
        return () => void done.push("let in");
      },
    },
    binary: () => null,
    isUnfitted: async () => false,
    inputs: async () => inputs,
    seenInputs: () => inputs,
    observed: () => restingRouter,
  });
  const action = { key: "router", reason: "PresetChanged", message: "", disrupts: [] };
  await handlers["router.reload"]({ ...action, kind: "router.reload", changes: ["acme/x:Q8_0"] }, run);
  assert.deepEqual(done, ["drain", "reload", "let in"]);
});
