// Text to speech: which engine there is, Piper or the embedded one, and the voices that it may be started with.
import { access } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { cachedVoices } from "../hub/speech-files.ts";
import type { PieceSpeaker } from "../speech/piper-http.ts";
import { locateSherpa, type SherpaInstallation } from "./install/sherpa.ts";
import { startOrMend } from "./mend-start.ts";
import { findPiper, type PiperInstallation, piperCommand } from "./piper.ts";
import type { ServerChildOptions } from "./server-child.ts";
import { discardPrepared, type PreparedVoice, prepareVoice, sherpaCommand } from "./sherpa.ts";
import { createSpeechEngine, type SpeechEngine, type SpeechEngineOptions } from "./speech-engine.ts";
import { createVoiceServer, type VoiceServer } from "./voice-server.ts";

/** `piper`: a Python package of the person's own; `embedded`: sherpa-onnx; `auto`: the first of them that is there. */
export type SpeechEngineChoice = "auto" | "piper" | "embedded";

export interface SynthesisEngine extends SpeechEngine, PieceSpeaker, Pick<VoiceServer, "check"> {}

const answersAtMost = 32;
/** A Piper process grows with every piece; this is half an hour of sound. */
const recycle = { requests: 500, bytes: 80e6 } as const;
/** Looking for Piper starts each Python that is there. */
const missingKeptMs = 30_000;

type Speaker =
  | { readonly kind: "piper"; readonly piper: PiperInstallation }
  | { readonly kind: "embedded"; readonly sherpa: SherpaInstallation };

export function createSynthesisEngine(
  options: Omit<ServerChildOptions, "what"> &
    Omit<SpeechEngineOptions, "what" | "atMost"> & {
      readonly engine: SpeechEngineChoice;
      /** A Python or a `piper` command that a setting names. */
      readonly explicit: string | undefined;
      readonly enginesDir: string;
      /** What installs the embedded engine. */
      readonly installCommand: string;
      readonly voicesDir: string;
      /** For the embedded engine's own form of a voice. */
      readonly copiesDir: string;
      readonly warn: (message: string, fields: object) => void;
    },
): SynthesisEngine {
  const { enginesDir, voicesDir, copiesDir } = options;
  const byCommand = `run \`${options.installCommand}\``;
  const server = createVoiceServer({ ...options, recycle });
  const piper = rememberPiper(options);
  const mayEmbed = options.engine === "embedded" || (options.engine === "auto" && options.explicit === undefined);
  let firstLook: Promise<unknown> | null = null;

  async function find(): Promise<Speaker> {
    const { engine, explicit } = options;
    const sherpa = await locateSherpa(enginesDir);
    if (sherpa && mayEmbed) {
      const known = engine === "auto" ? await piper.known() : null;
      return known ? { kind: "piper", piper: known } : { kind: "embedded", sherpa };
    }
    if (engine === "embedded")
      throw new GatewayError("engine_missing", `the embedded speech engine is not installed: ${byCommand}`);
    try {
      return { kind: "piper", piper: await piper.find() };
    } catch (error) {
      const { message } = toGatewayError(error);
      if (engine === "piper") throw error;
      const instead = explicit === undefined ? byCommand : `leave out --piper${sherpa ? "" : ` and ${byCommand}`}`;
      throw new GatewayError("engine_missing", `${message}, or ${instead}`);
    }
  }

  /** Whether there is anything that speaks; nobody waits for a Python where the embedded engine is there. */
  async function look(): Promise<void> {
    if (!mayEmbed || !(await locateSherpa(enginesDir))) await find();
    else if (options.engine === "auto") firstLook ??= piper.known();
  }

  async function start(voice: string, signal: AbortSignal): Promise<void> {
    const model = join(voicesDir, `${voice}.onnx`);
    let copy: PreparedVoice | null = null;
    try {
      await startOrMend({ what: voice, links: [model, `${model}.json`], signal, warn: options.warn }, async () => {
        const found = await find();
        if (found.kind === "piper") return server.start(voice, piperCommand(found.piper, { model, voicesDir }), signal);
        copy = await prepareVoice(voice, model, copiesDir);
        const threads = Math.max(1, Math.min(4, availableParallelism() - 1));
        return server.start(voice, sherpaCommand(found.sherpa, copy, threads), signal);
      });
    } catch (error) {
      // The copy itself may be damaged: the next try makes another.
      if (copy !== null && toGatewayError(error).code === "engine_failed") await discardPrepared(copy);
      throw error;
    }
  }

  const engine = createSpeechEngine(
    {
      snapshot: server.snapshot,
      find: look,
      has: async (voice) => (await cachedVoices(voicesDir)).includes(voice),
      start,
      stop: server.stop,
    },
    { ...options, what: "texts to speak", atMost: answersAtMost },
  );
  return { ...engine, speak: server.speak, check: server.check };
}

interface PiperSearch {
  /** Throws `engine_missing`, which it keeps for a while. */
  find(): Promise<PiperInstallation>;
  /**
   * What the last search found, however long ago: waited for is the first one alone. What came or went since is known the
   * next time.
   */
  known(): Promise<PiperInstallation | null>;
}

function rememberPiper(options: {
  readonly explicit: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly now: () => number;
}): PiperSearch {
  let found: PiperInstallation | null = null;
  let missing: { readonly error: unknown; readonly until: number } | null = null;
  let search: Promise<PiperInstallation> | null = null;

  async function look(): Promise<PiperInstallation> {
    try {
      found = await findPiper(options);
      missing = null;
      return found;
    } catch (error) {
      found = null;
      missing = { error, until: options.now() + missingKeptMs };
      throw error;
    } finally {
      search = null;
    }
  }

  async function find(): Promise<PiperInstallation> {
    if (found && (await isThere(found.python))) return found;
    if (missing && options.now() < missing.until) throw missing.error;
    return (search ??= look());
  }

  return {
    find,
    known: async () => {
      const wasMissing = missing !== null;
      const now = find().catch(() => null);
      return wasMissing ? null : now;
    },
  };
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
