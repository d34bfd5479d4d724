// Waits until an engine of speech runs with what a request needs. Starts nothing itself: the loop does.
import { GatewayError } from "../../core/errors.ts";
import type { DesiredState } from "../../desired/document/document.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { EngineRun, SpeechEngine } from "../../engines/speech/speech-engine.ts";
import type { SpeechKind, SpeechState } from "../../plan/observed.ts";
import { choiceKey, speechKey } from "../../plan/speech.ts";
import type { Loop, Pass } from "../../reconcile/loop.ts";
import { failureOf, suspended } from "../in-force.ts";

/** A process that runs with a choice; it is not ended before `release` is called. */
export interface Use<R extends EngineRun> {
  readonly choice: string;
  readonly run: R;
  release(): void;
}

/** All throw `speech_off`, `engine_missing`, `suspended`, `cancelled`, `shutting_down`, and what the failed action threw. */
export type Running<R extends EngineRun> = ReturnType<typeof createRunning<R>>;

export function createRunning<R extends EngineRun>(
  kind: SpeechKind,
  engine: SpeechEngine<R>,
  { store, loop }: { readonly store: Pick<DesiredStore, "current">; readonly loop: Loop },
) {
  async function untilPass(signal: AbortSignal, test: (pass: Pass) => boolean): Promise<void> {
    const { generation } = store.current();
    // The pass under way may have observed the engine before this request came, and then nothing starts it for a minute.
    await loop.waitFor({ generation, fresh: true, timeoutMs: Number.MAX_SAFE_INTEGER, signal, test });
  }

  function throwFailureAt(pass: Pass, key: string): void {
    const failure = failureAt(loop, pass, key);
    if (failure) throw failure;
  }

  return {
    /** With this choice; null: the document's. Throws `busy` where the document names another one by then. */
    use: async (asked: string | null, signal: AbortSignal): Promise<Use<R>> => {
      for (;;) {
        const choice = asked ?? choiceIn(store.current(), kind);
        const use = engine.use(choice);
        if (use) return { choice, ...use };
        await untilPass(signal, (pass) => {
          if (engine.runs(choice)) return true;
          if (choiceIn(store.current(), kind) !== choice) {
            if (asked === null) return true;
            throw new GatewayError("busy", `${choice} was replaced in the document meanwhile`, { retryAfterMs: 5_000 });
          }
          requireIn(pass.observed.speech[kind]);
          throwFailureAt(pass, choiceKey(kind, choice));
          throwFailureAt(pass, speechKey(kind));
          return false;
        });
      }
    },
    /** Throws where there is no engine, by a fresh observation. */
    requireEngine: (signal: AbortSignal) =>
      untilPass(signal, ({ observed }) => {
        requireIn(observed.speech[kind]);
        return true;
      }),
  };
}

/** Throws `speech_off`. */
export function choiceIn({ document: { speech } }: Pick<DesiredState, "document">, kind: SpeechKind): string {
  const choice = speech?.[kind] ?? null;
  if (choice !== null) return choice;
  throw new GatewayError("speech_off", speech ? `${kind} is off` : "speech is off");
}

function requireIn({ problem, phase }: SpeechState): void {
  if (problem !== null && phase === "stopped") throw new GatewayError("engine_missing", problem);
}

/** Why the planned action with this key will not be done by itself soon; null where it will. */
function failureAt(loop: Loop, { plan }: Pass, key: string): GatewayError | null {
  for (const { action, why } of plan.held) {
    if (action.key !== key) continue;
    if (why === "suspended") return suspended(action.message);
    const failure = failureOf(loop, action);
    if (failure) return failure;
  }
  return null;
}
