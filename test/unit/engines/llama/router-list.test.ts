// The router's list where requests for it overlap. Router and tables are plain functions here: only the order of events counts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRouterList } from "../../../../src/engines/llama/router-list.ts";
import type { RouterProcess } from "../../../../src/engines/llama/router-process.ts";
import type { RouterModel } from "../../../../src/plan/observed.ts";

function listWith(value: string): readonly RouterModel[] {
  return [{ id: "acme/alpha", value } as RouterModel];
}

test("a list that a newer one overtakes is dropped, and its request ends with the newer one in force", async () => {
  const answers: ((list: readonly RouterModel[]) => void)[] = [];
  const entered: (readonly RouterModel[])[] = [];
  const list = createRouterList(
    {
      process: { pid: 1 },
      client: { models: () => new Promise((resolve) => answers.push(resolve)) },
      key: "",
    } as unknown as RouterProcess,
    {
      instances: { update: (_pid, _key, models) => void entered.push(models) },
      pingMs: 1_000,
      now: () => 0,
      onChange: () => undefined,
      onList: () => undefined,
    },
  );
  const older = list.refresh();
  const newer = list.refresh();
  answers[1]?.(listWith("loading"));
  answers[0]?.(listWith("unloaded"));
  await older;
  assert.deepEqual(list.models(), { state: "known", value: listWith("loading") });
  await newer;
  assert.deepEqual(entered, [listWith("loading")]);
});
