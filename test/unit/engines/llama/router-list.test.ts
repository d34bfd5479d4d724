// The router's list where requests for it overlap. Router and tables are plain functions here: only the order of events counts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { RouterEvent } from "../../../../src/engines/llama/router-client.ts";
import { createRouterList, type RouterList } from "../../../../src/engines/llama/router-list.ts";
import type { RouterProcess } from "../../../../src/engines/llama/router-process.ts";
import type { RouterModel } from "../../../../src/plan/observed.ts";

function listWith(value: string): readonly RouterModel[] {
  return [{ id: "acme/alpha", value } as RouterModel];
}

/** The list of a router whose requests are answered by hand, in their order, and whose events come by hand. */
function startList(): {
  readonly list: RouterList;
  readonly answers: ((list: readonly RouterModel[]) => void)[];
  readonly entered: (readonly RouterModel[])[];
  /** Of the subscription. */
  readonly sends: ((event: RouterEvent) => void)[];
} {
  const answers: ((list: readonly RouterModel[]) => void)[] = [];
  const entered: (readonly RouterModel[])[] = [];
  const sends: ((event: RouterEvent) => void)[] = [];
  const list = createRouterList(
    {
      process: { pid: 1 },
      client: {
        models: () => new Promise((resolve) => answers.push(resolve)),
        watch: (onEvent: (event: RouterEvent) => void, signal: AbortSignal) => {
          sends.push(onEvent);
          return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        },
      },
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
  return { list, answers, entered, sends };
}

test("a list that a newer one overtakes is dropped, and its request ends with the newer one in force", async () => {
  const { list, answers, entered } = startList();
  const older = list.refresh();
  const newer = list.refresh();
  answers[1]?.(listWith("loading"));
  answers[0]?.(listWith("unloaded"));
  await older;
  assert.deepEqual(list.models(), { state: "known", value: listWith("loading") });
  await newer;
  assert.deepEqual(entered, [listWith("loading")]);
});

test("the list of a reload counts against those asked for while it ran; one that is answered after it is asked for again", async () => {
  const { list, answers, entered } = startList();
  const during = list.refresh();
  const across = list.refresh();
  answers[0]?.(listWith("unloading"));
  await during;
  list.takeReloaded(listWith("unloaded"));
  assert.deepEqual(list.models(), { state: "known", value: listWith("unloaded") });
  answers[1]?.(listWith("unloading"));
  await setImmediate();
  assert.deepEqual(list.models(), { state: "known", value: listWith("unloaded") });
  answers[2]?.(listWith("loading"));
  await across;
  assert.deepEqual(entered, ["unloading", "unloaded", "loading"].map(listWith));
});

test("the event of a load that is done counts at once, also against a list from before it", async (t) => {
  const { list, answers, sends } = startList();
  t.after(list.stop);
  list.follow();
  const before = list.refresh();
  answers[0]?.(listWith("loading"));
  await before;
  const older = list.refresh();
  const info = { id: "acme/alpha", meta: { n_ctx: 512 } };
  sends[0]?.({ model: "acme/alpha", event: "status_change", data: { status: "loaded", info } });
  const loaded = { state: "known", value: [{ ...listWith("loaded")[0], nCtx: 512 }] };
  assert.deepEqual(list.models(), loaded);
  answers[1]?.(listWith("loading"));
  await older;
  assert.deepEqual(list.models(), loaded);
  answers[2]?.(listWith("unloaded"));
  await setImmediate();
  assert.deepEqual(list.models(), { state: "known", value: listWith("unloaded") });
  // No list had it as loading yet: its address is in the one that is under way, which still counts.
  const underWay = list.refresh();
  sends[0]?.({ model: "acme/alpha", event: "status_change", data: { status: "loaded", info } });
  answers[3]?.(listWith("loading"));
  await underWay;
  assert.deepEqual(list.models(), { state: "known", value: listWith("loading") });
});
