// From a request to an engine that runs with what it asks for: the document is changed where it names another voice, the loop
// is woken, and the outcome awaited. Starts nothing itself.
import { errorCatalog } from "../../core/error-catalog.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { SpeechEngine } from "../../engines/speech-engine.ts";
import type { SpeechLists } from "../../hub/speech-files.ts";
import { backoffKey, type HeldAction } from "../../plan/actions.ts";
import type { SpeechKind, SpeechState } from "../../plan/observed.ts";
import { choiceKey, speechKey } from "../../plan/speech.ts";
import type { Loop, Pass } from "../../reconcile/loop.ts";
import { type Speakers, speakerNumber, splitVoiceName } from "../../speech/voice-config.ts";
import { createVoiceTurns, type VoiceTurn } from "../../speech/voice-turns.ts";
import { findVoiceId, requireVoice } from "../../speech/voices.ts";
import type { Call } from "../edits/edits.ts";
import type { FetchVoice } from "./fetch-voice.ts";

export interface SpeechUse {
  /** Throws `speech_off` where the document does not turn it on. */
  requireOn(kind?: SpeechKind): void;
  /**
   * Resolves when the transcription engine runs with the document's model, or, while that is not on disk, with the one before
   * it; call the result when the answer is through.
   * Throws `speech_off`, `engine_missing`, `busy`, `suspended`, `cancelled`, and what the action that failed said.
   */
  transcription(call: Call): Promise<() => void>;
  /**
   * The same for a voice (`en_US-lessac-medium`) or one of its speakers (`en_GB-vctk-medium:p239`); the voice becomes the
   * document's. Throws `voice_not_found` besides, `invalid_request` for a speaker that it does not have, and what `check`
   * throws, before anything is changed.
   */
  voice(name: string, call: Call, check: (speaker: number | null) => void): Promise<VoiceUse>;
}

export interface VoiceUse {
  /** Null: the voice's only or first one. */
  readonly speaker: number | null;
  /** It has spoken, so it stays the document's. */
  confirm(): void;
  /** Nothing could be spoken with it: the document names the voice before again, unless somebody else could. */
  takeBack(): Promise<void>;
  /** Call it when the answer is through. */
  release(): void;
}

export interface SpeechUseDeps {
  readonly store: DesiredStore;
  readonly loop: Loop;
  readonly engines: Readonly<Record<SpeechKind, SpeechEngine>>;
  readonly lists: SpeechLists;
  readonly cachedVoices: () => Promise<readonly string[]>;
  /** Of a voice on disk. */
  readonly speakersOf: (voice: string) => Promise<Speakers>;
  readonly fetchVoice: FetchVoice;
}

/** Clients whose makers know no other voices send one of these. */
const openAiVoices: ReadonlySet<string> = new Set(
  "alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split(" "),
);
/** How often a request asks for its voice again when somebody else has changed it meanwhile. */
const attempts = 3;
/** A voice that others wait for keeps the engine for as long as its start took, within these, and no longer than it is used. */
const shortestTurnMs = 1_000;
const longestTurnMs = 30_000;
/** After these the document keeps the voice that was asked for. */
const noted: ReadonlySet<string> = new Set(["suspended", "shutting_down"]);

export function createSpeechUse(deps: SpeechUseDeps): SpeechUse {
  const { store, engines } = deps;
  const turns = createVoiceTurns(steadyNow);

  function choiceOf(kind: SpeechKind): string {
    const choice = store.current().document.speech?.[kind] ?? null;
    if (choice !== null) return choice;
    throw new GatewayError("speech_off", store.current().document.speech ? `${kind} is off` : "speech is off");
  }

  /** Null where it does not run with this choice now. */
  async function leaseOf(kind: SpeechKind, choice: string, call: Call): Promise<(() => void) | null> {
    const engine = engines[kind];
    if (!engine.runs(choice)) return null;
    const release = await engine.lease(call.signal);
    // It may have been stopped while this one waited in line.
    if (engine.runs(choice)) return release;
    release();
    return null;
  }

  /**
   * Null where the document names another choice by now. Only while somebody wants the engine. `exactly`: not with the one before,
   * which stands in while that is not here.
   */
  async function whenRunning(
    kind: SpeechKind,
    choice: string,
    call: Call,
    { generation = 0, exactly = false } = {},
  ): Promise<(() => void) | null> {
    const engine = engines[kind];
    let serving = choice;
    for (;;) {
      const release = await leaseOf(kind, serving, call);
      if (release) return release;
      if (choiceOf(kind) !== choice) return null;
      await deps.loop.waitFor({
        generation,
        timeoutMs: Number.MAX_SAFE_INTEGER,
        signal: call.signal,
        test: (pass) => {
          if ((pass.desired.document.speech?.[kind] ?? null) !== choice) return true;
          const standIn = exactly ? null : pass.observed.speech[kind].standIn;
          serving = standIn ?? choice;
          if (engine.runs(serving)) return true;
          throwIfStuck(deps.loop, pass, kind, standIn === null ? choice : null);
          return false;
        },
      });
    }
  }

  async function whileWanted<T>(kind: SpeechKind, work: () => Promise<T>): Promise<T> {
    const unwant = engines[kind].want();
    try {
      return await work();
    } finally {
      unwant();
    }
  }

  /** The document's voice; until that is here the one before serves. Changes nothing, and has its turn like any other. */
  async function documentVoice(call: Call): Promise<() => void> {
    for (;;) {
      // What a request tries may be taken back: it is the document's once it speaks.
      const choice = turns.replaced() ?? choiceOf("synthesis");
      const before = engines.synthesis.snapshot().choice;
      const isServed = before !== null && engines.synthesis.runs(before) && !(await isNextUp(choice));
      const release = isServed ? await leaseOf("synthesis", before, call) : await inDocumentsTurn(choice, call);
      if (release) return release;
    }
  }

  /** Null where the document names another voice by now. */
  async function inDocumentsTurn(choice: string, call: Call): Promise<(() => void) | null> {
    const turn = await turns.enter(choice, call.signal);
    let release: (() => void) | null = null;
    try {
      if (choiceOf("synthesis") === choice) release = await whenRunning("synthesis", choice, call);
    } finally {
      if (!release) turn.leave();
    }
    return release && kept(turn, release);
  }

  /** The turn lasts from here, as long as the start took; call the result when the answer is through. */
  function kept(turn: VoiceTurn, release: () => void): () => void {
    turn.begun(Math.min(Math.max(engines.synthesis.startMs(), shortestTurnMs), longestTurnMs));
    return () => {
      release();
      turn.leave();
    };
  }

  /** Whether the engine is about to run with this voice, which the document names. */
  async function isNextUp(voice: string): Promise<boolean> {
    return !store.current().document.suspend && (await deps.cachedVoices()).includes(voice);
  }

  /** The voice that is meant, and whether it is here. */
  async function meaningOf(name: string, signal: AbortSignal): Promise<Meaning> {
    const current = choiceOf("synthesis");
    const { voice, speaker } = splitVoiceName(name);
    const here = findVoiceId(await deps.cachedVoices(), voice);
    if (here !== null)
      return {
        // As the document has it.
        voice: here.normalize("NFC"),
        speaker: speaker === null ? null : speakerNumber(await deps.speakersOf(here), speaker, here),
        isHere: true,
      };
    // The loop is at it, or says why not.
    if (speaker === null && findVoiceId([current], voice) !== null) return { voice: current, speaker, isHere: true };
    const official = requireVoice(await deps.lists.voices(signal), voice);
    return {
      voice: official.key,
      speaker: speakerNumber(official, speaker, official.key),
      isHere: official.key === current || (await deps.cachedVoices()).includes(official.key),
    };
  }

  /** Not while the document says suspend, nor for an engine that is missing: that is said before anything is fetched. */
  async function fetch(voice: string, call: Call): Promise<void> {
    const { desired } = await deps.loop.waitFor({
      generation: 0,
      timeoutMs: Number.MAX_SAFE_INTEGER,
      signal: call.signal,
      test: ({ observed }) => {
        throwIfMissing(observed.speech.synthesis);
        return true;
      },
    });
    if (!desired.document.suspend) await deps.fetchVoice(voice, call.signal);
  }

  /** The engine with the voice, which becomes the document's; null where another one has its turn by now. */
  async function inTurn(turn: VoiceTurn, voice: string, call: Call): Promise<(() => void) | null> {
    // The loaded voice serves, also while another one that the document names is still being fetched.
    const loaded = await leaseOf("synthesis", voice, call);
    if (loaded) return loaded;
    const { generation } = await store.edit(({ document }) => {
      const before = document.speech?.synthesis ?? null;
      if (before === null || before === voice || !turn.isOn()) return null;
      turn.replaced = before;
      return { patch: patchOf(voice) };
    }, call.by);
    return whenRunning("synthesis", voice, call, { generation, exactly: true }).catch(async (error: unknown) => {
      const { code } = toGatewayError(error);
      if (!noted.has(code) && (code !== "cancelled" || turn.isAlone())) await takeBack(turn, voice, call);
      throw error;
    });
  }

  /** What cannot be had does not stay in the document. */
  async function takeBack({ replaced }: VoiceTurn, voice: string, call: Call): Promise<void> {
    if (replaced === null) return;
    await store.edit(
      ({ document }) => (document.speech?.synthesis === voice ? { patch: patchOf(replaced) } : null),
      call.by,
    );
  }

  async function voiceUse({ voice, speaker }: Meaning, call: Call): Promise<VoiceUse> {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const turn = await turns.enter(voice, call.signal);
      const release = await inTurn(turn, voice, call).catch((error: unknown) => {
        turn.leave();
        throw error;
      });
      if (release) {
        return {
          speaker,
          confirm: () => {
            turn.replaced = null;
          },
          takeBack: () => takeBack(turn, voice, call),
          release: kept(turn, release),
        };
      }
      turn.leave();
    }
    const message = `others change the voice all the time: ${voice} could not be kept`;
    throw new GatewayError("busy", message, { retryAfterMs: 5_000 });
  }

  return {
    requireOn: (kind) => {
      if (kind) choiceOf(kind);
      else if (!store.current().document.speech) throw new GatewayError("speech_off", "speech is off");
    },
    transcription: (call) =>
      whileWanted("transcription", async () => {
        for (;;) {
          const release = await whenRunning("transcription", choiceOf("transcription"), call);
          if (release) return release;
        }
      }),
    voice: async (name, call, check) => {
      if (openAiVoices.has(name.trim().toLowerCase())) {
        check(null);
        const release = await whileWanted("synthesis", () => documentVoice(call));
        return { speaker: null, confirm: () => undefined, takeBack: async () => undefined, release };
      }
      const meaning = await meaningOf(name, call.signal);
      check(meaning.speaker);
      if (!meaning.isHere && !engines.synthesis.runs(meaning.voice)) await fetch(meaning.voice, call);
      return whileWanted("synthesis", () => voiceUse(meaning, call));
    },
  };
}

interface Meaning {
  /** An id. */
  readonly voice: string;
  readonly speaker: number | null;
  /** Nothing has to be fetched for it. */
  readonly isHere: boolean;
}

function patchOf(voice: string): { readonly speech: { readonly synthesis: { readonly voice: string } } } {
  return { speech: { synthesis: { voice } } };
}

/** Throws where the engine will not run by itself soon, or the choice, where one has to be pulled, not be here. */
function throwIfStuck(loop: Loop, { plan, observed }: Pass, kind: SpeechKind, choice: string | null): void {
  throwIfMissing(observed.speech[kind]);
  const keys = [speechKey(kind), ...(choice === null ? [] : [choiceKey(kind, choice)])];
  for (const { action, why } of plan.held.filter((held) => keys.includes(held.action.key))) {
    if (why === "suspended")
      throw new GatewayError("suspended", `the document says suspend: nothing is done to ${action.message}`);
    const entry = loop.backoff().get(backoffKey(action));
    if (entry) throw new GatewayError(entry.code, entry.message, retryOf(entry, why));
  }
}

function throwIfMissing({ problem, phase }: SpeechState): void {
  if (problem !== null && phase === "stopped") throw new GatewayError("engine_missing", problem);
}

function retryOf(
  { code, until }: { readonly code: GatewayError["code"]; readonly until: number },
  why: HeldAction["why"],
): { retryAfterMs?: number } {
  if (why !== "backoff" || errorCatalog[code].status < 500) return {};
  return { retryAfterMs: Math.max(1_000, until - steadyNow()) };
}
