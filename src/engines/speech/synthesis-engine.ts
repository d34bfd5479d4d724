// Text to speech: the engine that is available, Piper or sherpa-onnx, and its voices.
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { cachedVoices } from "../../cache/download/speech-files.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { locateSherpa } from "../install/sherpa.ts";
import { createPiperSearch, piperCommand } from "./piper.ts";
import { sherpaCommand } from "./sherpa.ts";
import { prepareVoice } from "./sherpa-voice.ts";
import { createSpeechEngine, type SpeechEngine, type SpeechEngineOptions } from "./speech-engine.ts";
import { startVoice, type VoiceCommand, type VoiceOptions, type VoiceRun } from "./voice-process.ts";

/** `piper`: an installed Python package; `embedded`: sherpa-onnx; `auto`: the first of them that is available. */
export type SpeechEngineChoice = "auto" | "piper" | "embedded";

const queueDepth = 31;

export function createSynthesisEngine(
  options: VoiceOptions &
    Omit<SpeechEngineOptions, "what" | "queueDepth"> & {
      readonly engine: SpeechEngineChoice;
      /** A Python or a `piper` command that a setting names. */
      readonly explicit: string | undefined;
      readonly enginesDir: string;
      /** What installs the embedded engine. */
      readonly installCommand: string;
      readonly voicesDir: string;
      /** For the embedded engine's own form of a voice. */
      readonly copiesDir: string;
    },
): SpeechEngine<VoiceRun> {
  const { engine: choice, explicit, enginesDir, voicesDir, copiesDir } = options;
  const byCommand = `run \`${options.installCommand}\``;
  const findPiper = createPiperSearch(options);
  const mayEmbed = choice === "embedded" || (choice === "auto" && explicit === undefined);

  /** What makes the command for a voice. */
  async function find(): Promise<(voice: string, model: string) => Promise<VoiceCommand>> {
    const sherpa = mayEmbed ? await locateSherpa(enginesDir) : null;
    try {
      if (choice !== "embedded") {
        const python = await findPiper();
        return async (_voice, model) => piperCommand(python, { model, voicesDir });
      }
    } catch (error) {
      if (choice === "piper") throw error;
      const instead = explicit === undefined ? byCommand : "leave out --piper";
      if (!sherpa) throw new GatewayError("engine_missing", `${toGatewayError(error).message}, or ${instead}`);
    }
    if (!sherpa) throw new GatewayError("engine_missing", `the embedded speech engine is not installed: ${byCommand}`);
    const threads = Math.max(1, Math.min(4, availableParallelism() - 1));
    return async (voice, model) => sherpaCommand(sherpa, await prepareVoice(voice, model, copiesDir), threads);
  }

  async function launch(voice: string, signal: AbortSignal): Promise<VoiceRun> {
    const model = join(voicesDir, `${voice}.onnx`);
    const commandFor = await find();
    return startVoice(await commandFor(voice, model), options, signal);
  }

  return createSpeechEngine(
    {
      // A check starts no Python if the embedded engine is available.
      find: async () => (mayEmbed && (await locateSherpa(enginesDir)) ? undefined : find()),
      has: async (voice) => (await cachedVoices(voicesDir)).includes(voice),
      launch,
      overlaps: true,
    },
    { ...options, what: "texts to speak", queueDepth },
  );
}
