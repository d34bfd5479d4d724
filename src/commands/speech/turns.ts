// From a request to its turn on an engine that runs with what it asks for. Another voice is an edit of the document, taken back
// where it cannot be had; it is downloaded before that, while the voice before it still answers.
import { clientLeftError, GatewayError, toGatewayError } from "../../core/errors.ts";
import { createLine } from "../../core/line.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { EngineRun, SpeechEngine } from "../../engines/speech/speech-engine.ts";
import type { VoiceRun } from "../../engines/speech/voice-process.ts";
import type { WhisperRun } from "../../engines/speech/whisper.ts";
import type { Executor } from "../../execute/executor.ts";
import type { Action } from "../../plan/actions.ts";
import type { SpeechKind } from "../../plan/observed.ts";
import { choiceKey } from "../../plan/speech.ts";
import type { Loop } from "../../reconcile/loop.ts";
import { whileOpen } from "../../scheduler/while-open.ts";
import { actionDone, type Call, suspended } from "../in-force.ts";
import { choiceIn, createRunning, type Running, type Use } from "./running.ts";

export type SpeechTurns = ReturnType<typeof createSpeechTurns>;

export interface SpeechTurn<R> {
  /** The process that answers. */
  run(): R;
  /** After it ended in the middle of the answer: resolves when another one runs with the same choice. */
  again(): Promise<void>;
  /** Call it when the answer is through; a second call does nothing. */
  over(): void;
}

export interface SpeechTurnsDeps {
  readonly store: DesiredStore;
  readonly loop: Loop;
  readonly engines: { readonly transcription: SpeechEngine<WhisperRun>; readonly synthesis: SpeechEngine<VoiceRun> };
  readonly cachedVoices: () => Promise<readonly string[]>;
  readonly executor: Pick<Executor, "submit" | "follow" | "cancel" | "running">;
  /** No new work is taken. */
  readonly stopping: AbortSignal;
}

/** Requests that wait for the download of a voice. */
const queueDepth = 31;
/** After these the document keeps the voice that was asked for. */
const kept: ReadonlySet<string> = new Set(["cancelled", "suspended", "shutting_down"]);

export function createSpeechTurns(deps: SpeechTurnsDeps) {
  const { store, cachedVoices, executor, stopping } = deps;
  const { transcription, synthesis } = deps.engines;
  const transcribing = createRunning("transcription", transcription, deps);
  const speaking = createRunning("synthesis", synthesis, deps);
  const downloads = createLine({
    width: 1,
    depth: queueDepth,
    refusal: (waiting) =>
      new GatewayError("busy", `${waiting} requests wait for voices already`, { retryAfterMs: 5_000 }),
    gone: () => clientLeftError(),
  });

  /** One that cannot be had does not stay in the document. */
  async function withVoice(voice: string, call: Call): Promise<Use<VoiceRun>> {
    // The loaded voice speaks, also while another one that the document names is being pulled.
    if (synthesis.runs(voice)) return speaking.use(voice, call.signal);
    const before = choiceIn(store.current(), "synthesis");
    const change = (from: string, to: string): Promise<unknown> =>
      store.edit(
        ({ document }) =>
          document.speech?.synthesis === from ? { patch: { speech: { synthesis: { voice: to } } } } : null,
        call,
      );
    await change(before, voice);
    try {
      return await speaking.use(voice, call.signal);
    } catch (error) {
      if (!kept.has(toGatewayError(error).code)) await change(voice, before);
      throw error;
    }
  }

  /** A request that cannot succeed is refused before anything is downloaded. */
  async function download(voice: string, { signal }: Call): Promise<void> {
    const isHere = async (): Promise<boolean> => (await cachedVoices()).includes(voice);
    if (synthesis.runs(voice) || (await isHere())) return;
    if (store.current().document.suspend) throw suspended(`pull ${voice}`);
    if (voice !== choiceIn(store.current(), "synthesis")) await store.requireWritable(["speech", "synthesis", "voice"]);
    await speaking.requireEngine(signal);
    const over = await downloads.take(signal);
    try {
      while (!(await isHere())) {
        await actionDone(executor, pullOf(voice), signal, "cancel").catch((error: unknown) => {
          // The document named it too and does not any more, and the loop has cancelled its own pull.
          if (signal.aborted || toGatewayError(error).code !== "cancelled") throw error;
        });
      }
    } finally {
      over();
    }
  }

  async function turn<R extends EngineRun>(
    engine: SpeechEngine<R>,
    running: Pick<Running<R>, "use">,
    call: Call,
    begin: () => Promise<Use<R>>,
  ): Promise<SpeechTurn<R>> {
    const leave = await whileOpen(stopping, call.signal, (signal) => engine.take(signal));
    let use: Use<R>;
    try {
      use = await begin();
    } catch (error) {
      leave();
      throw error;
    }
    let isOver = false;
    return {
      run: () => use.run,
      again: async () => {
        use.release();
        use = await running.use(use.choice, call.signal);
      },
      over: () => {
        if (isOver) return;
        isOver = true;
        use.release();
        leave();
      },
    };
  }

  return {
    /** Throws `speech_off` where the document does not turn it on; without a kind: neither of them. */
    requireOn: (kind?: SpeechKind): void => {
      if (kind) choiceIn(store.current(), kind);
      else if (!store.current().document.speech) throw new GatewayError("speech_off", "speech is off");
    },
    /** Waits for the request's turn, and until the engine runs. Throws `busy`, and as {@link Running}. */
    transcription: (call: Call): Promise<SpeechTurn<WhisperRun>> =>
      turn(transcription, transcribing, call, () => transcribing.use(null, call.signal)),
    /** The same with a voice, which becomes the document's; null: the document's voice. */
    synthesis: async (voice: string | null, call: Call): Promise<SpeechTurn<VoiceRun>> => {
      if (voice === null) return turn(synthesis, speaking, call, () => speaking.use(null, call.signal));
      await download(voice, call);
      return turn(synthesis, speaking, call, () => withVoice(voice, call));
    },
  };
}

function pullOf(voice: string): Action {
  return {
    kind: "voice.pull",
    key: choiceKey("synthesis", voice),
    voice,
    requested: true,
    reason: "VoiceRequested",
    message: `pull ${voice}`,
    disrupts: [],
  };
}
