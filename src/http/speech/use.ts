// From a request to an engine that runs with what it asks for: the document is changed where it names another voice, the loop
// is woken, and the outcome awaited. Starts nothing itself.
import { errorCatalogue, GatewayError, toGatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { SpeechEngine } from "../../engines/speech-engine.ts";
import type { SpeechLists } from "../../hub/speech-files.ts";
import { backoffKey, type HeldAction } from "../../plan/actions.ts";
import type { SpeechKind } from "../../plan/observed.ts";
import { choiceKey, speechKey } from "../../plan/speech.ts";
import type { Loop, Pass } from "../../reconcile/loop.ts";
import { createTurns } from "../../speech/turns.ts";
import { isVoiceId, requireVoice } from "../../speech/voices.ts";
import type { Call } from "../edits/edits.ts";

export interface SpeechUse {
  /** Throws `speech_off` where the document does not turn it on. */
  requireOn(kind?: SpeechKind): void;
  /**
   * Resolves when the transcription engine runs with the document's model; call the result when the answer is through.
   * Throws `speech_off`, `engine_missing`, `busy`, `suspended`, `cancelled`, and what the action that failed said.
   */
  transcription(call: Call): Promise<() => void>;
  /** The same for a voice, which becomes the document's. Throws `voice_not_found` besides. */
  voice(name: string, call: Call): Promise<() => void>;
}

export interface SpeechUseDeps {
  readonly store: DesiredStore;
  readonly loop: Loop;
  readonly engines: Readonly<Record<SpeechKind, SpeechEngine>>;
  readonly lists: SpeechLists;
  readonly cachedVoices: () => Promise<readonly string[]>;
}

/** Clients whose makers know no other voices send one of these. */
const openAiVoices: ReadonlySet<string> = new Set(
  "alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split(" "),
);
/** How often a request asks for its voice again when somebody else has changed it meanwhile. */
const attempts = 3;
const changesInLine = 32;
/** After these the document keeps the voice that was asked for. */
const noted: ReadonlySet<string> = new Set(["suspended", "shutting_down"]);

export function createSpeechUse(deps: SpeechUseDeps): SpeechUse {
  const { store, engines } = deps;
  // One change after the other: else two clients would take each other's voice away before either has spoken.
  const changes = createTurns({ width: 1, depth: changesInLine, what: "changes of the voice" });

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

  /** Null where the document names another choice by now. */
  async function whenRunning(
    kind: SpeechKind,
    choice: string,
    call: Call,
    generation = 0,
  ): Promise<(() => void) | null> {
    const engine = engines[kind];
    const unwant = engine.want();
    try {
      for (;;) {
        const release = await leaseOf(kind, choice, call);
        if (release) return release;
        if (choiceOf(kind) !== choice) return null;
        await deps.loop.waitFor({
          generation,
          timeoutMs: Number.MAX_SAFE_INTEGER,
          signal: call.signal,
          test: (pass) => {
            if (engine.runs(choice) || (pass.desired.document.speech?.[kind] ?? null) !== choice) return true;
            throwIfStuck(deps.loop, pass, kind, choice);
            return false;
          },
        });
      }
    } finally {
      unwant();
    }
  }

  /** The id of the voice that is meant. */
  async function idOf(name: string, signal: AbortSignal): Promise<string> {
    const current = choiceOf("synthesis");
    const wanted = name.trim().normalize("NFC");
    if (openAiVoices.has(wanted.toLowerCase())) return engines.synthesis.snapshot().choice ?? current;
    if (wanted === current) return current;
    if (isVoiceId(wanted) && (await deps.cachedVoices()).includes(wanted)) return wanted;
    return requireVoice(await deps.lists.voices(signal), wanted).key;
  }

  async function changeTo(voice: string, call: Call): Promise<(() => void) | null> {
    const over = await changes.take(call.signal);
    try {
      const before = choiceOf("synthesis");
      const { generation } = await store.edit(
        ({ document }) => (document.speech?.synthesis ? { patch: patchOf(voice) } : null),
        call.by,
      );
      return await whenRunning("synthesis", voice, call, generation).catch(async (error: unknown) => {
        if (!noted.has(toGatewayError(error).code)) await takeBack(voice, before, call);
        throw error;
      });
    } finally {
      over();
    }
  }

  /** What cannot be had does not stay in the document. */
  async function takeBack(voice: string, before: string, call: Call): Promise<void> {
    await store.edit(
      ({ document }) => (document.speech?.synthesis === voice && before !== voice ? { patch: patchOf(before) } : null),
      call.by,
    );
  }

  return {
    requireOn: (kind) => {
      if (kind) choiceOf(kind);
      else if (!store.current().document.speech) throw new GatewayError("speech_off", "speech is off");
    },
    transcription: async (call) => {
      for (;;) {
        const release = await whenRunning("transcription", choiceOf("transcription"), call);
        if (release) return release;
      }
    },
    voice: async (name, call) => {
      const voice = await idOf(name, call.signal);
      // The loaded voice serves, also while another one that the document names is still being fetched.
      const unwant = engines.synthesis.want();
      const loaded = await leaseOf("synthesis", voice, call).finally(unwant);
      if (loaded) return loaded;
      for (let attempt = 1; attempt <= attempts; attempt++) {
        const isSame = choiceOf("synthesis") === voice;
        const release = isSame ? await whenRunning("synthesis", voice, call) : await changeTo(voice, call);
        if (release) return release;
      }
      const message = `others change the voice all the time: ${voice} could not be kept`;
      throw new GatewayError("busy", message, { retryAfterMs: 5_000 });
    },
  };
}

function patchOf(voice: string): { readonly speech: { readonly synthesis: { readonly voice: string } } } {
  return { speech: { synthesis: { voice } } };
}

/** Throws where the choice will not run by itself soon. */
function throwIfStuck(loop: Loop, { plan, observed }: Pass, kind: SpeechKind, choice: string): void {
  const { problem, phase } = observed.speech[kind];
  if (problem !== null && phase === "stopped") throw new GatewayError("engine_missing", problem);
  const keys = [speechKey(kind), choiceKey(kind, choice)];
  for (const { action, why } of plan.held.filter((held) => keys.includes(held.action.key))) {
    if (why === "suspended")
      throw new GatewayError("suspended", `the document says suspend: nothing is done to ${action.message}`);
    const entry = loop.backoff().get(backoffKey(action));
    if (entry) throw new GatewayError(entry.code, entry.message, retryOf(entry, why));
  }
}

function retryOf(
  { code, until }: { readonly code: GatewayError["code"]; readonly until: number },
  why: HeldAction["why"],
): { retryAfterMs?: number } {
  if (why !== "backoff" || errorCatalogue[code].status < 500) return {};
  return { retryAfterMs: Math.max(1_000, until - steadyNow()) };
}
