// The condition of speech in each situation, and that chats do not wait for it.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SpeechState } from "../../../src/plan/observed.ts";
import { gatewayFindings } from "../../../src/status/conditions.ts";
import { engineReport } from "../../../src/status/speech.ts";
import { conditionOf, failure, statusInput } from "./situations.ts";

const voice = "en_US-lessac-medium";
const document = { speech: { synthesis: { voice } } };
const here = { cached: [voice] } as const;

const cases: readonly (readonly [
  why: string,
  state: Partial<SpeechState>,
  condition: string,
  failed?: readonly [key: string, reason: string],
])[] = [
  ["waits to be asked", here, "True Idle"],
  ["ended by itself", { ...here, crashes: [1], exitReason: "killed" }, "True Idle"],
  ["runs", { ...here, phase: "ready", choice: voice, pid: 5 }, "True Serving"],
  ["does not answer", { ...here, phase: "ready", choice: voice, silentSince: 1 }, "False NotAnswering"],
  ["starts", { ...here, phase: "starting" }, "False Starting"],
  ["runs with another", { ...here, phase: "ready", choice: "de_DE-x-low" }, "False Changing"],
  ["no engine", { ...here, problem: "none" }, "False EngineMissing"],
  ["not here", {}, "False VoiceMissing"],
  ["the hub is away", {}, "False HubUnreachable", [`voice.pull voice/${voice}`, "HubUnreachable"]],
  ["there is no such voice", {}, "False VoiceMissing", [`voice.pull voice/${voice}`, "VoiceNotFound"]],
  ["it does not start", here, "False EngineFailed", ["speech.start speech/synthesis", "EngineFailed"]],
];

for (const [why, state, condition, failed] of cases) {
  test(`SpeechReady: ${why}`, () => {
    const backoff = failed ? new Map([[failed[0], { ...failure, reason: failed[1] }]]) : new Map<string, never>();
    const findings = gatewayFindings(statusInput({ document, machine: { synthesis: state }, backoff }));
    assert.equal(conditionOf("SpeechReady", findings), condition);
    assert.equal(conditionOf("Ready", findings), "True Serving");
  });
}

test("SpeechReady: what answers meanwhile is no matter while a choice is not here", () => {
  const said = (state: Partial<SpeechState>): string | undefined => {
    const findings = gatewayFindings(statusInput({ document, machine: { synthesis: state } }));
    return findings.find(({ type }) => type === "SpeechReady")?.message;
  };
  assert.match(said({}) ?? "", /it is being pulled$/);
  assert.equal(said({ ...here, phase: "ready", choice: "de_DE-x-low" }), "synthesis still runs with de_DE-x-low");
});

test("SpeechReady: an engine that ends again and again says when it starts next", () => {
  const said = (wanted: boolean): string => {
    const synthesis = { ...here, wanted, exitReason: "killed", crashes: [999_000, 999_500, 999_999] };
    const findings = gatewayFindings(statusInput({ document, machine: { synthesis } }));
    const { status, reason, message } = findings.find(({ type }) => type === "SpeechReady") ?? {};
    return `${status} ${reason} ${message}`;
  };
  assert.match(said(false), /^True Idle .*, not before 1970-01-01T00:16:41\.999Z; it exited by itself: killed/);
  assert.match(said(true), /^False EngineFailed synthesis starts again at 1970-01-01T00:16:41\.999Z; it exited/);
});

test("SpeechReady: off, there is none; of two halves the one that does not work is told", () => {
  const off = gatewayFindings(statusInput({}));
  assert.equal(
    off.some(({ type }) => type === "SpeechReady"),
    false,
  );
  const both = { speech: { transcription: { model: "base" }, synthesis: { voice } } };
  const findings = gatewayFindings(
    statusInput({ document: both, machine: { synthesis: { ...here, phase: "ready", choice: voice } } }),
  );
  assert.equal(conditionOf("SpeechReady", findings), "False ModelMissing");
  const neither = gatewayFindings(
    statusInput({
      document: both,
      machine: { transcription: { problem: "no whisper" }, synthesis: { problem: "no voice" } },
    }),
  );
  assert.equal(neither.find(({ type }) => type === "SpeechReady")?.message, "no whisper; no voice");
});

test("/status has what an engine runs beside what the document asks for, and null for an engine that is off", () => {
  const engine = { phase: "ready", pid: 5, choice: "de_DE-x-low", crashes: [1, 2], users: 3 } as const;
  const { choice: running, users: inFlight, ...same } = engine;
  assert.deepEqual(engineReport(voice, engine), { ...same, choice: voice, running, inFlight, crashes: 2 });
  assert.equal(engineReport(null, engine), null);
});
