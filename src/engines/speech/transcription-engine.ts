// Speech to text: the whisper-server that is available, and the models in the cache.
import { join } from "node:path";
import { cachedTranscriptionModel } from "../../cache/download/speech-files.ts";
import { GatewayError } from "../../core/errors.ts";
import { locateEngine } from "../install/locate.ts";
import { machineMemory } from "../process/memory.ts";
import type { ServerOptions } from "../process/server-process.ts";
import { createSpeechEngine, type SpeechEngine, type SpeechEngineOptions } from "./speech-engine.ts";
import { startWhisper, type WhisperRun } from "./whisper.ts";

const queueDepth = 16;

export function createTranscriptionEngine(
  options: ServerOptions &
    Omit<SpeechEngineOptions, "what" | "queueDepth"> & {
      /** The executable that a setting names. */
      readonly explicit: string | undefined;
      readonly enginesDir: string;
      /** What installs the engine. */
      readonly installCommand: string;
      readonly cacheDir: string;
      /** Bytes by which it may grow over one upload, and at most half of the machine's memory. */
      readonly memory: number;
    },
): SpeechEngine<WhisperRun> {
  const { cacheDir, enginesDir } = options;
  const whisperOptions = {
    ...options,
    scratchDir: join(options.stateDir, "uploads"),
    memoryLimit: Math.min(options.memory, machineMemory() / 2),
  };

  async function find(): Promise<string> {
    const { explicit, environment } = options;
    const found = await locateEngine("whisper-server", {
      explicit,
      enginesDir,
      pathVariable: environment["PATH"] ?? "",
    });
    if (found !== null) return found;
    throw new GatewayError(
      "engine_missing",
      `no whisper-server was found: run \`${options.installCommand}\`, or name one with --whisper-server`,
    );
  }

  async function launch(name: string, signal: AbortSignal): Promise<WhisperRun> {
    const model = await cachedTranscriptionModel(cacheDir, name);
    // It was a moment ago: the next pass fetches it again.
    if (!model) throw new GatewayError("cancelled", `${name} is not in the model cache any more`);
    return startWhisper(await find(), model.path, whisperOptions, signal);
  }

  return createSpeechEngine(
    {
      find,
      has: async (name) => (await cachedTranscriptionModel(cacheDir, name)) !== null,
      launch,
      // A model has up to 3 GB: two of them may not fit into the memory.
      overlaps: false,
    },
    { ...options, what: "transcriptions", queueDepth },
  );
}
