// The next actions for speech: fetch what the document names, start and stop engines.
// Pure, as the planner is.
import { restartAfterCrash } from "../core/backoff.ts";
import type { Desired } from "../desired/document/document.ts";
import type { Action, Candidate } from "./actions.ts";
import { type Observed, type SpeechKind, type SpeechState, speechKinds } from "./observed.ts";

/** Findings name what no action repairs: an engine that is not installed. */
export function planSpeech(
  desired: Desired,
  observed: Observed,
  findings: Map<string, string>,
  now: number,
): Candidate[] {
  return speechKinds.flatMap((kind) => {
    const state = observed.speech[kind];
    const wanted = desired.speech?.[kind] ?? null;
    if (wanted === null) return stopped(kind, state, "SpeechOff", "which the document no longer names");
    if (state.problem !== null && state.phase === "stopped") findings.set(speechKey(kind), state.problem);
    return [
      ...planPull(kind, state, wanted),
      ...planEngine(kind, state, wanted, desired.speech?.start === "now" || state.wanted, now),
    ];
  });
}

export function speechKey(kind: SpeechKind): string {
  return `speech/${kind}`;
}

/** What a choice is fetched under. */
export function choiceKey(kind: SpeechKind, choice: string): string {
  return `${kind === "transcription" ? "transcription" : "voice"}/${choice}`;
}

function planPull(kind: SpeechKind, state: SpeechState, wanted: string): Candidate[] {
  if (state.cached.includes(wanted)) return [];
  const base = { key: choiceKey(kind, wanted), message: `pull ${wanted}`, disrupts: [] };
  return kind === "transcription"
    ? [{ action: { ...base, kind: "transcription.pull", file: wanted, reason: "ModelAbsent" } }]
    : [{ action: { ...base, kind: "voice.pull", voice: wanted, reason: "VoiceAbsent" } }];
}

function planEngine(kind: SpeechKind, state: SpeechState, wanted: string, isNeeded: boolean, now: number): Candidate[] {
  const isThere = state.cached.includes(wanted);
  if (state.phase === "ready") {
    if (isThere && state.choice !== wanted) return started(kind, wanted, "ChoiceChanged");
    if (state.idle && !isNeeded) return stopped(kind, state, "Idle", "which was not used for a while");
    return state.worn && state.choice === wanted ? started(kind, wanted, "ProcessWorn") : [];
  }
  if (state.phase !== "stopped" || !isThere || !isNeeded || state.problem !== null) return [];
  const reason = state.exitReason === "" ? "EngineStopped" : "EngineCrashed";
  return started(kind, wanted, reason, restartAfterCrash(state.crashes, now));
}

function started(kind: SpeechKind, choice: string, reason: string, notBefore = 0): Candidate[] {
  const message = `start ${kind} with ${choice}`;
  return [
    {
      action: { kind: "speech.start", key: speechKey(kind), engine: kind, choice, reason, message, disrupts: [] },
      notBefore,
    },
  ];
}

function stopped(kind: SpeechKind, state: SpeechState, reason: string, why: string): Candidate[] {
  if (state.phase !== "ready") return [];
  const message = `stop ${kind} with ${state.choice ?? "nothing"}, ${why}`;
  const action: Action = { kind: "speech.stop", key: speechKey(kind), engine: kind, reason, message, disrupts: [] };
  return [{ action }];
}
