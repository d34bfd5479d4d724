// In which order questions are asked, and what they wait for.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { createJobs } from "../../../src/memory/jobs.ts";

test("a question that nothing waits for begins in a moment, and not while a model is being loaded", async (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const asked: string[] = [];
  let isLoading = true;
  const jobs = createJobs({
    isLoading: () => isLoading,
    onDone: () => undefined,
    onError: (error) => assert.fail(String(error)),
  });
  const add = (name: string, isUrgent?: boolean): Promise<void> =>
    jobs.add(name, async () => void asked.push(name), isUrgent);

  const first = add("a");
  void add("b");
  mock.timers.tick(1_000);
  assert.deepEqual(asked, []);
  await add("c", true);
  await add("b", true);
  assert.deepEqual(asked, ["c", "b"], "what a load waits for is asked beside another load");
  isLoading = false;
  mock.timers.tick(99);
  assert.deepEqual([asked, jobs.count()], [["c", "b"], 1]);
  mock.timers.tick(1);
  await first;
  assert.deepEqual([asked, jobs.count()], [["c", "b", "a"], 0]);
});
