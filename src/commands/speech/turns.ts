// From a request to its turn on an engine that runs with what it asks for. Another voice is an edit of the document, taken back
// where it cannot be had.

import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { EngineRun, SpeechEngine } from "../../engines/speech/speech-engine.ts";
import type { VoiceRun } from "../../engines/speech/voice-process.ts";
import type { WhisperRun } from "../../engines/speech/whisper.ts";
import type { SpeechKind } from "../../plan/observed.ts";
import type { Loop } from "../../reconcile/loop.ts";
import { whileOpen } from "../../scheduler/while-open.ts";
import type { Call } from "../edits.ts";
import type { FetchVoice } from "./fetch-voice.ts";
import { choiceIn, createRunning, type Running, suspended, type Use } from "./running.ts";

export interface SpeechTurns {
  /** Throws `speech_off` where the document does not turn it on; without a kind: neither of them. */
  requireOn(kind?: SpeechKind): void;
  /** Waits for the request's turn, and until the engine runs. Throws `busy`, and as {@link Running.asDocumented}. */
  transcription(call: Call): Promise<SpeechTurn<WhisperRun>>;
  /** The same with a voice, which becomes the document's; null: the document's voice. */
  synthesis(voice: string | null, call: Call): Promise<SpeechTurn<VoiceRun>>;
}

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
  readonly fetchVoice: FetchVoice;
  /** No new work is taken. */
  readonly stopping: AbortSignal;
}

/** After these the document keeps the voice that was asked for. */
const kept: ReadonlySet<string> = new Set(["cancelled", "suspended", "shutting_down"]);

export function createSpeechTurns({
  store,
  loop,
  engines,
  cachedVoices,
  fetchVoice,
  stopping,
}: SpeechTurnsDeps): SpeechTurns {
  const { transcription, synthesis } = engines;
  const transcribing = createRunning({ kind: "transcription", engine: transcription, store, loop });
  const speaking = createRunning({ kind: "synthesis", engine: synthesis, store, loop });

  /** One that cannot be had does not stay in the document. */
  async function withVoice(voice: string, { by, signal }: Call): Promise<Use<VoiceRun>> {
    // The loaded voice speaks, also while another one that the document names is being pulled.
    if (synthesis.runs(voice)) return speaking.exactly(voice, signal);
    const before = choiceIn(store.current(), "synthesis");
    const change = (from: string, to: string): Promise<unknown> =>
      store.edit(
        ({ document }) =>
          document.speech?.synthesis === from ? { patch: { speech: { synthesis: { voice: to } } } } : null,
        by,
      );
    await change(before, voice);
    try {
      return await speaking.exactly(voice, signal);
    } catch (error) {
      if (!kept.has(toGatewayError(error).code)) await change(voice, before);
      throw error;
    }
  }

  /** That nothing can come of it is known before anything is downloaded. */
  async function fetch(voice: string, { signal }: Call): Promise<void> {
    if (synthesis.runs(voice) || (await cachedVoices()).includes(voice)) return;
    if (store.current().document.suspend) throw suspended(`pull ${voice}`);
    await speaking.requireEngine(signal);
    await fetchVoice(voice, signal);
  }

  async function turn<R extends EngineRun>(
    engine: SpeechEngine<R>,
    { exactly }: Pick<Running<R>, "exactly">,
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
        use = await exactly(use.choice, call.signal);
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
    requireOn: (kind) => {
      if (kind) choiceIn(store.current(), kind);
      else if (!store.current().document.speech) throw new GatewayError("speech_off", "speech is off");
    },
    transcription: (call) => turn(transcription, transcribing, call, () => transcribing.asDocumented(call.signal)),
    synthesis: async (voice, call) => {
      if (voice === null) return turn(synthesis, speaking, call, () => speaking.asDocumented(call.signal));
      await fetch(voice, call);
      return turn(synthesis, speaking, call, () => withVoice(voice, call));
    },
  };
}
