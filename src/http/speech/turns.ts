// From a request to its turn on an engine that runs with what it asks for: the document is changed where the request names
// another voice, the loop is woken, and the outcome awaited. Starts nothing itself.
import { errorCatalogue, GatewayError, toGatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { SpeechEngine } from "../../engines/speech-engine.ts";
import { backoffKey } from "../../plan/actions.ts";
import type { SpeechKind, SpeechState } from "../../plan/observed.ts";
import { choiceKey, speechKey } from "../../plan/speech.ts";
import type { Loop, Pass } from "../../reconcile/loop.ts";
import type { Call } from "../edits/edits.ts";
import { whileOpen } from "../while-open.ts";
import type { FetchVoice } from "./fetch-voice.ts";

export interface SpeechTurns {
  /** Throws `speech_off` where the document does not turn it on; without a kind: neither of them. */
  requireOn(kind?: SpeechKind): void;
  /**
   * Waits for the request's turn, and until the engine runs: transcription with the document's model, or with the one before
   * while that cannot be had. Throws `speech_off`, `busy`, `engine_missing`, `suspended`, `cancelled`, `shutting_down`, and what
   * the failed action threw.
   */
  transcription(call: Call): Promise<SpeechTurn>;
  /** The same for a voice, which becomes the document's; null: the document's voice. */
  synthesis(voice: string | null, call: Call): Promise<SpeechTurn>;
}

export interface SpeechTurn {
  /** After the engine ended in the middle of the answer: resolves when it runs with the same choice again. */
  again(): Promise<void>;
  /** Call it when the answer is through; a second call does nothing. */
  over(): void;
}

export interface SpeechTurnsDeps {
  readonly store: DesiredStore;
  readonly loop: Loop;
  readonly engines: Readonly<Record<SpeechKind, SpeechEngine>>;
  readonly cachedVoices: () => Promise<readonly string[]>;
  readonly fetchVoice: FetchVoice;
  /** No new work is taken. */
  readonly stopping: AbortSignal;
}

/** What an engine is used with, until `release` is called. */
interface Use {
  readonly choice: string;
  release(): void;
}

/** After these the document keeps the voice that was asked for. */
const kept: ReadonlySet<string> = new Set(["cancelled", "suspended", "shutting_down"]);

export function createSpeechTurns(deps: SpeechTurnsDeps): SpeechTurns {
  const { store, loop, engines } = deps;

  function documented(kind: SpeechKind): string {
    const { speech } = store.current().document;
    const choice = speech?.[kind] ?? null;
    if (choice !== null) return choice;
    throw new GatewayError("speech_off", speech ? `${kind} is off` : "speech is off");
  }

  function useOf(kind: SpeechKind, choice: string): Use | null {
    const release = engines[kind].use(choice);
    return release && { choice, release };
  }

  async function untilPass(call: Call, generation: number, test: (pass: Pass) => boolean): Promise<void> {
    await loop.waitFor({ generation, timeoutMs: Number.MAX_SAFE_INTEGER, signal: call.signal, test });
  }

  /** With this choice and no other. */
  async function exactly(kind: SpeechKind, choice: string, call: Call, generation = 0): Promise<Use> {
    for (;;) {
      const use = useOf(kind, choice);
      if (use) return use;
      await untilPass(call, generation, (pass) => {
        if (engines[kind].runs(choice)) return true;
        if (documented(kind) !== choice)
          throw new GatewayError("busy", `${choice} was replaced in the document meanwhile`, { retryAfterMs: 5_000 });
        requireEngine(pass.observed.speech[kind]);
        const failure = failureOf(loop, pass, choiceKey(kind, choice)) ?? failureOf(loop, pass, speechKey(kind));
        if (failure) throw failure;
        return false;
      });
    }
  }

  /** With the document's choice; while that cannot be had, with the one before. */
  async function asDocumented(kind: SpeechKind, call: Call): Promise<Use> {
    const engine = engines[kind];
    let choice = documented(kind);
    for (;;) {
      const use = useOf(kind, choice);
      if (use) return use;
      await untilPass(call, 0, (pass) => {
        const state = pass.observed.speech[kind];
        choice = documented(kind);
        if (engine.runs(choice)) return true;
        requireEngine(state);
        const isHere = state.cached.includes(choice);
        const startFailure = failureOf(loop, pass, speechKey(kind));
        const running = engine.snapshot().choice;
        if (running !== null && (startFailure || !isHere)) choice = running;
        else if (startFailure) throw startFailure;
        else if (!isHere) {
          const pullFailure = failureOf(loop, pass, choiceKey(kind, choice));
          if (state.fallback !== null) choice = state.fallback;
          else if (pullFailure) throw pullFailure;
        }
        return engine.runs(choice);
      });
    }
  }

  /** The voice becomes the document's. One that cannot be had does not stay there. */
  async function inForce(voice: string, call: Call): Promise<Use> {
    // The loaded voice speaks, also while another one that the document names is being pulled.
    const loaded = useOf("synthesis", voice);
    if (loaded) return loaded;
    const before = documented("synthesis");
    const change = (from: string, to: string): ReturnType<DesiredStore["edit"]> =>
      store.edit(({ document }) => (document.speech?.synthesis === from ? { patch: patchOf(to) } : null), call.by);
    const { generation } = await change(before, voice);
    try {
      return await exactly("synthesis", voice, call, generation);
    } catch (error) {
      if (!kept.has(toGatewayError(error).code)) await change(voice, before);
      throw error;
    }
  }

  /** That nothing can come of it is known before anything is downloaded. */
  async function fetch(voice: string, call: Call): Promise<void> {
    if (engines.synthesis.runs(voice) || (await deps.cachedVoices()).includes(voice)) return;
    if (store.current().document.suspend) throw suspended(`pull ${voice}`);
    await untilPass(call, 0, ({ observed }) => {
      requireEngine(observed.speech.synthesis);
      return true;
    });
    await deps.fetchVoice(voice, call.signal);
  }

  async function turn(kind: SpeechKind, call: Call, begin: () => Promise<Use>): Promise<SpeechTurn> {
    const engine = engines[kind];
    const leave = await whileOpen(deps.stopping, call.signal, (signal) => engine.take(signal));
    let use: Use;
    try {
      use = await begin();
    } catch (error) {
      leave();
      throw error;
    }
    let isOver = false;
    return {
      again: async () => {
        use.release();
        use = await exactly(kind, use.choice, call);
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
      if (kind) documented(kind);
      else if (!store.current().document.speech) throw new GatewayError("speech_off", "speech is off");
    },
    transcription: (call) => turn("transcription", call, () => asDocumented("transcription", call)),
    synthesis: async (voice, call) => {
      if (voice === null) return turn("synthesis", call, () => asDocumented("synthesis", call));
      await fetch(voice, call);
      return turn("synthesis", call, () => inForce(voice, call));
    },
  };
}

function patchOf(voice: string): { readonly speech: { readonly synthesis: { readonly voice: string } } } {
  return { speech: { synthesis: { voice } } };
}

function requireEngine({ problem, phase }: SpeechState): void {
  if (problem !== null && phase === "stopped") throw new GatewayError("engine_missing", problem);
}

/** Why an action that is needed will not be done by itself soon; null where it will. */
function failureOf(loop: Loop, { plan }: Pass, key: string): GatewayError | null {
  for (const { action, why } of plan.held) {
    if (action.key !== key) continue;
    if (why === "suspended") return suspended(action.message);
    const entry = loop.backoff().get(backoffKey(action));
    if (!entry) continue;
    const retries = why === "backoff" && errorCatalogue[entry.code].status >= 500;
    return new GatewayError(
      entry.code,
      entry.message,
      retries ? { retryAfterMs: Math.max(1_000, entry.until - steadyNow()) } : {},
    );
  }
  return null;
}

function suspended(what: string): GatewayError {
  return new GatewayError("suspended", `the document says suspend: not done: ${what}`);
}
