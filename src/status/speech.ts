// What is said of speech: its condition, and its part of /status. Pure.
import { restartAfterCrash } from "../core/backoff.ts";
import { followedBy } from "../core/sentences.ts";
import type { Desired } from "../desired/document/document.ts";
import type { BackoffEntry, Plan } from "../plan/actions.ts";
import { type Observed, type SpeechKind, type SpeechState, speechKinds } from "../plan/observed.ts";
import { choiceKey, speechKey } from "../plan/speech.ts";

interface EngineReport {
  /** The model's file or the voice that the document names. */
  readonly choice: string;
  /** The one that it runs with. */
  readonly running: string | null;
  readonly phase: string;
  readonly pid: number | null;
  /** Answers under way and in line. */
  readonly inFlight: number;
  readonly crashes: number;
}

/** Null: off. */
export type SpeechReport = Readonly<Record<SpeechKind, EngineReport | null>>;

interface SpeechFinding {
  readonly type: "SpeechReady";
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

type Said = Omit<SpeechFinding, "type">;

interface SpeechInput {
  readonly desired: Pick<Desired, "speech">;
  readonly observed: Pick<Observed, "speech">;
  readonly plan: Pick<Plan, "held">;
  readonly backoff: ReadonlyMap<string, BackoffEntry>;
}

/** None while the document does not turn speech on. */
export function speechFindings(input: SpeechInput): SpeechFinding[] {
  const { speech } = input.desired;
  if (speech === null) return [];
  const said = speechKinds.flatMap((kind) => {
    const wanted = speech[kind];
    return wanted === null ? [] : [engineFinding(kind, wanted, input.observed.speech[kind], input)];
  });
  // What does not work before what does, what serves before what waits to be asked.
  const wrong = said.filter(({ status }) => status !== "True");
  const [first] = wrong.length > 0 ? wrong : [...said.filter(({ reason }) => reason === "Serving"), ...said];
  if (!first) return [];
  const message = (wrong.length > 0 ? wrong : said).map((each) => each.message).join("; ");
  return [{ ...first, type: "SpeechReady", message }];
}

function engineFinding(kind: SpeechKind, wanted: string, state: SpeechState, { backoff, plan }: SpeechInput): Said {
  const isThere = state.cached.includes(wanted);
  if (state.problem !== null && state.phase === "stopped") return no("EngineMissing", state.problem);
  const failure =
    backoff.get(`${kind === "transcription" ? "transcription" : "voice"}.pull ${choiceKey(kind, wanted)}`) ??
    backoff.get(`speech.start ${speechKey(kind)}`);
  const other = state.phase === "ready" ? state.choice : state.fallback;
  const meanwhile = other === null || other === wanted ? "" : `; ${other} still answers`;
  if (failure) {
    const why = `${followedBy(failure.message, failure.hint).replace(/\.$/, "")}${meanwhile}`;
    if (failure.reason === "HubUnreachable") return no("HubUnreachable", why);
    return no(isThere ? failure.reason : missing(kind), why);
  }
  if (!isThere) return no(missing(kind), `${wanted} is not here yet: it is being pulled${meanwhile}`);
  if (state.silentSince !== null)
    return no("NotAnswering", `${kind} does not answer; it is ended and started again if it stays silent`);
  if (state.phase === "ready" && state.choice === wanted) return yes("Serving", `${kind} runs with ${wanted}`);
  if (state.phase === "ready") return no("Changing", `${kind} still runs with ${state.choice ?? "another"}`);
  if (state.phase === "starting") return no("Starting", `${kind} is starting with ${wanted}`);
  if (state.exitReason === "") return yes("Idle", `${kind} starts with the first request`);
  const ended = `it ended by itself: ${state.exitReason}`;
  const last = state.crashes.at(-1) ?? 0;
  const earliest = restartAfterCrash(state.crashes, last);
  const pause = plan.held.find(({ action, why }) => action.key === speechKey(kind) && why === "backoff");
  if (pause) return no("EngineFailed", `${kind} starts again at ${timeOf(pause.until ?? earliest)}; ${ended}`);
  const when = earliest > last ? `, not before ${timeOf(earliest)}` : "";
  return yes("Idle", `${kind} starts again with the next request${when}; ${ended}`);
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function missing(kind: SpeechKind): string {
  return kind === "transcription" ? "ModelMissing" : "VoiceMissing";
}

function yes(reason: string, message: string): Said {
  return { status: "True", reason, message };
}

function no(reason: string, message: string): Said {
  return { status: "False", reason, message };
}
