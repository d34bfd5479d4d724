// What is planned for speech: each situation of an engine, and what it leads to.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SpeechState } from "../../../src/plan/observed.ts";
import { plan } from "../../../src/plan/plan.ts";
import { desiredFrom, silenceLimitMs, world } from "./world.ts";

const voice = "en_US-lessac-medium";
const other = "de_DE-thorsten-medium";
const synthesis = { speech: { synthesis: { voice } } };
const now = { speech: { synthesis: { voice }, start: "now" } };
const running = { phase: "ready", pid: 7, choice: voice, cached: [voice] } as const;

const cases: readonly (readonly [
  why: string,
  document: object,
  state: Partial<SpeechState>,
  actions: readonly string[],
  held?: readonly string[],
])[] = [
  ["off", {}, { cached: [voice], wanted: true }, []],
  ["not here yet", synthesis, {}, [`voice.pull voice/${voice}`]],
  ["here, and nobody asks", synthesis, { cached: [voice] }, []],
  ["here, and somebody asks", synthesis, { cached: [voice], wanted: true }, ["speech.start speech/synthesis"]],
  ["somebody asks before it is here", synthesis, { wanted: true }, [`voice.pull voice/${voice}`]],
  ["it is to run always", now, { cached: [voice] }, ["speech.start speech/synthesis"]],
  ["it starts already", now, { cached: [voice], phase: "starting" }, []],
  ["it is being stopped", now, { cached: [voice], phase: "stopping" }, []],
  ["it runs", synthesis, running, []],
  ["it runs, and its file went", synthesis, { ...running, cached: [] }, [`voice.pull voice/${voice}`]],
  ["idle", synthesis, { ...running, idle: true }, ["speech.stop speech/synthesis"]],
  ["idle, but it is to run always", now, { ...running, idle: true }, []],
  ["idle, but somebody just came", synthesis, { ...running, idle: true, wanted: true }, []],
  ["no longer named", {}, running, ["speech.stop speech/synthesis"]],
  ["another voice that is here", synthesis, { ...running, choice: other }, ["speech.start speech/synthesis"]],
  ["worn", synthesis, { ...running, worn: true }, ["speech.start speech/synthesis"]],
  ["worn and idle", synthesis, { ...running, worn: true, idle: true }, ["speech.stop speech/synthesis"]],
  [
    "another voice that is not here: the one before goes on",
    synthesis,
    { ...running, choice: other, cached: [other] },
    [`voice.pull voice/${voice}`],
  ],
  [
    "another that is not here, idle",
    synthesis,
    { ...running, choice: other, cached: [], idle: true },
    [`voice.pull voice/${voice}`, "speech.stop speech/synthesis"],
  ],
  ["another that is not here, stopped", synthesis, { wanted: true }, [`voice.pull voice/${voice}`]],
  ["no engine", now, { cached: [voice], problem: "none" }, []],
  ["no engine any more, but one runs", synthesis, { ...running, problem: "none" }, []],
  ["it crashed once", now, { cached: [voice], crashes: [999_999] }, ["speech.start speech/synthesis"]],
  [
    "it crashes again and again",
    now,
    { cached: [voice], crashes: [999_000, 999_500, 999_999] },
    [],
    ["speech.start speech/synthesis backoff"],
  ],
  ["it crashed, and nobody asks", synthesis, { cached: [voice], crashes: [999_999] }, []],
  ["suspended", { ...now, suspend: true }, { cached: [voice] }, [], ["speech.start speech/synthesis suspended"]],
];

for (const [why, document, state, actions, held = []] of cases) {
  test(`speech: ${why}`, () => {
    const desired = desiredFrom(document);
    const found = plan(desired, world(desired, { synthesis: state }), {
      now: 1_000_000,
      backoff: new Map(),
      silenceLimitMs,
    });
    assert.deepEqual(
      found.actions.map(({ kind, key }) => `${kind} ${key}`),
      actions,
    );
    assert.deepEqual(
      found.held.map(({ action, why: reason }) => `${action.kind} ${action.key} ${reason}`),
      held,
    );
    assert.equal(found.findings.has("speech/synthesis"), state.problem === "none" && state.phase !== "ready");
  });
}

test("a transcription model is meant by its short name too, and has its own engine", () => {
  const desired = desiredFrom({ speech: { transcription: { model: "base.en" }, synthesis: { voice } } });
  assert.equal(desired.speech?.transcription, "ggml-base.en.bin");
  const found = plan(desired, world(desired, { synthesis: running }), {
    now: 1_000_000,
    backoff: new Map(),
    silenceLimitMs,
  });
  assert.deepEqual(
    found.actions.map(({ kind, key }) => `${kind} ${key}`),
    ["transcription.pull transcription/ggml-base.en.bin"],
  );
});
