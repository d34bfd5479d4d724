// Speech to text: which whisper-server there is, which models lie in the cache, and an upload's way through it.
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { cachedTranscriptionModel } from "../hub/speech-files.ts";
import { transcriptionRepo } from "../speech/transcription-models.ts";
import { locateEngine, whyNone } from "./locate.ts";
import { machineMemory } from "./memory.ts";
import { startOrMend } from "./mend-start.ts";
import type { ServerChildOptions } from "./server-child.ts";
import { createSpeechEngine, type SpeechEngine, type SpeechEngineOptions } from "./speech-engine.ts";
import { createWhisper, type Transcription } from "./whisper.ts";
import type { Upload } from "./whisper-wire.ts";

export interface TranscriptionEngine extends SpeechEngine {
  /** Throws as {@link Whisper.transcribe}. */
  transcribe(upload: Upload): Promise<Transcription>;
}

/** It does one at a time; the others wait in line. */
const queueDepth = 16;

export function createTranscriptionEngine(
  options: Omit<ServerChildOptions, "what"> &
    Omit<SpeechEngineOptions, "what" | "atMost"> & {
      /** The executable that a setting names. */
      readonly explicit: string | undefined;
      readonly enginesDir: string;
      /** What installs the engine. */
      readonly installCommand: string;
      readonly cacheDir: string;
      /** Bytes by which it may grow over one upload, and at most half of the machine's memory. */
      readonly memory: number;
      readonly warn: (message: string, fields: object) => void;
    },
): TranscriptionEngine {
  const { cacheDir } = options;
  const whisper = createWhisper({
    ...options,
    queueDepth,
    scratchDir: join(options.stateDir, "uploads"),
    memoryLimit: Math.min(options.memory, machineMemory() / 2),
  });

  async function find(): Promise<string> {
    const { explicit, enginesDir, environment } = options;
    const found = await locateEngine("whisper-server", {
      explicit,
      enginesDir,
      pathVariable: environment["PATH"] ?? "",
    });
    if (found) return found.path;
    throw new GatewayError(
      "engine_missing",
      `${await whyNone("whisper-server", enginesDir)}: run \`${options.installCommand}\`, or name one with --whisper-server`,
    );
  }

  const has = async (name: string): Promise<boolean> => (await cachedTranscriptionModel(cacheDir, name)) !== null;

  const engine = createSpeechEngine(
    {
      snapshot: whisper.snapshot,
      find,
      has,
      start: async (name, signal) => {
        const model = await cachedTranscriptionModel(cacheDir, name);
        // It was a moment ago: with the next look it is fetched again.
        if (!model) throw new GatewayError("cancelled", `${name} is not in the model cache any more`);
        const links = model.repo === transcriptionRepo ? [model.path] : [];
        await startOrMend({ what: name, links, signal, warn: options.warn }, async () =>
          whisper.start(await find(), model.path, signal),
        );
      },
      stop: whisper.stop,
    },
    { ...options, what: "transcriptions", atMost: queueDepth + 1 },
  );
  return {
    ...engine,
    transcribe: whisper.transcribe,
    close: async () => {
      await engine.close();
      await whisper.close();
    },
  };
}
