// A request that needs an engine of speech, beside the real loop.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRunning } from "../../../../src/commands/speech/running.ts";
import { type DesiredState, toDesired, toTree } from "../../../../src/desired/document/document.ts";
import type { EngineRun, SpeechEngine } from "../../../../src/engines/speech/speech-engine.ts";
import { startLooping } from "../../../support/looping.ts";
import { patienceMs } from "../../../support/patience.ts";
import { until } from "../../../support/scratch.ts";

const voice = "en_US-low-low";

test("a request that comes while a pass observes is seen by the next pass, which follows at once", async (t) => {
  const world = startLooping(t);
  const tree = { version: 1 as const, speech: { synthesis: { voice } } };
  const desired: DesiredState = {
    generation: 0,
    tree,
    document: toDesired(toTree(tree)),
    hash: "",
    etag: "",
    applied: null,
  };
  let isStarted = false;
  const engine: Partial<SpeechEngine> = {
    use: () => (isStarted ? { run: {} as EngineRun, release: () => undefined } : null),
    runs: () => isStarted,
  };
  const store = { current: () => desired };
  const running = createRunning("synthesis", engine as SpeechEngine, { store, loop: world.loop });
  world.loop.start();
  await until("nothing is left to do", () => world.passes.at(-1)?.plan.actions.length === 0);
  let asked: Promise<unknown> | undefined;
  world.beforeLook = () => {
    isStarted = asked !== undefined;
  };
  world.afterLook = () => {
    asked ??= running.use(voice, AbortSignal.timeout(patienceMs));
  };
  world.loop.wake();
  await until("the request comes", () => asked !== undefined);
  await assert.doesNotReject(asked ?? Promise.reject(new Error("it did not come")));
});
