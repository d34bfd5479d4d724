// What is said of speech: its condition, and its part of /status. Pure.
import { restartAfterCrash } from "../core/backoff.ts";
import { type SpeechKind, type SpeechState, speechKinds } from "../plan/observed.ts";
import { choiceKey, speechKey } from "../plan/speech.ts";
import { type Finding, failed, failureOf, finding, reported, type StatusInput } from "./finding.ts";
import type { StatusReport } from "./report.ts";

/** None while the document does not turn speech on. */
export function speechFindings(input: StatusInput): Finding[] {
  const { speech } = input.desired;
  if (speech === null) return [];
  const found = speechKinds.flatMap((kind) => {
    const wanted = speech[kind];
    return wanted === null ? [] : [engineFinding(kind, wanted, input.observed.speech[kind], input)];
  });
  // What does not work before what does, what serves before what waits to be asked.
  const wrong = found.filter(({ status }) => status !== "True");
  const [first] = wrong.length > 0 ? wrong : [...found.filter(({ reason }) => reason === "Serving"), ...found];
  if (!first) return [];
  const message = (wrong.length > 0 ? wrong : found).map((each) => each.message).join("; ");
  return [{ ...first, message }];
}

/** Its message is a clause: those of both engines make one sentence. */
function engineFinding(kind: SpeechKind, wanted: string, state: SpeechState, { backoff, plan }: StatusInput): Finding {
  const isThere = state.cached.includes(wanted);
  const missing = kind === "transcription" ? "ModelMissing" : "VoiceMissing";
  if (state.problem !== null && state.phase === "stopped")
    return finding("SpeechReady", "EngineMissing", state.problem);
  const pull = kind === "transcription" ? "transcription.pull" : "voice.pull";
  const failure =
    failureOf(backoff, pull, choiceKey(kind, wanted)) ?? failureOf(backoff, "speech.start", speechKey(kind));
  if (failure) {
    const isOwn = isThere || failure.reason === "HubUnreachable";
    const { message } = failed("SpeechReady", failure);
    return reported("SpeechReady", "False", isOwn ? failure.reason : missing, message.replace(/\.$/, ""));
  }
  if (!isThere) {
    const held = plan.held.find(({ action, why }) => action.key === choiceKey(kind, wanted) && why === "writer");
    const why = held ? held.because : "it is being pulled";
    return finding("SpeechReady", missing, `${wanted} is not here yet: ${why}`);
  }
  if (state.silentSince !== null)
    return finding("SpeechReady", "NotAnswering", `${kind} does not answer; it is restarted if that lasts`);
  if (state.phase === "ready")
    return state.choice === wanted
      ? finding("SpeechReady", "Serving", `${kind} runs with ${wanted}`)
      : finding("SpeechReady", "Changing", `${kind} still runs with ${state.choice ?? "another"}`);
  if (state.phase === "starting") return finding("SpeechReady", "Starting", `${kind} is starting with ${wanted}`);
  if (state.exitReason === "") return finding("SpeechReady", "Idle", `${kind} starts with the first request`);
  const ended = `it exited by itself: ${state.exitReason}`;
  const last = state.crashes.at(-1) ?? 0;
  const earliest = restartAfterCrash(state.crashes, last);
  const pause = plan.held.find(({ action, why }) => action.key === speechKey(kind) && why === "backoff");
  if (pause)
    return finding(
      "SpeechReady",
      "EngineFailed",
      `${kind} starts again at ${timeOf(pause.until ?? earliest)}; ${ended}`,
    );
  const when = earliest > last ? `, not before ${timeOf(earliest)}` : "";
  return finding("SpeechReady", "Idle", `${kind} starts again with the next request${when}; ${ended}`);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

type EngineSnapshot = Pick<SpeechState, "phase" | "pid" | "choice" | "crashes"> & { readonly users: number };

/** `wanted` null: the document does not turn it on. */
export function engineReport(
  wanted: string | null,
  { phase, pid, choice, crashes, users }: EngineSnapshot,
): StatusReport["speech"][SpeechKind] {
  if (wanted === null) return null;
  return { choice: wanted, running: choice, phase, pid, inFlight: users, crashes: crashes.length };
}
