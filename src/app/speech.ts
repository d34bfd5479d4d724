// The two speech engines and the official lists, wired. Starts nothing.
import { join } from "node:path";
import { cachedTranscriptionModels, cachedVoices, voiceConfigOf } from "../cache/download/speech-files.ts";
import { createSpeechLists } from "../cache/download/speech-lists.ts";
import { steadyNow } from "../core/steady.ts";
import type { Desired } from "../desired/document/document.ts";
import type { EngineLogs } from "../engines/process/engine-logs.ts";
import type { ServerOptions } from "../engines/process/server-process.ts";
import { createSynthesisEngine } from "../engines/speech/synthesis-engine.ts";
import { createTranscriptionEngine } from "../engines/speech/transcription-engine.ts";
import type { HubClient } from "../hub/client.ts";
import type { SpeechKind, SpeechObserved } from "../plan/observed.ts";
import { engineReport } from "../status/speech.ts";
import type { Base } from "./events.ts";
import { outputOf } from "./logs.ts";

interface SpeechParts extends Base {
  readonly hub: HubClient;
  readonly document: () => Desired;
  readonly logs: EngineLogs;
}

export function createSpeech(options: SpeechParts) {
  const { settings, warn, events, hub, document } = options;
  const { stateDir, cacheDir, environment } = settings;
  const enginesDir = join(stateDir, "engines");
  const voicesDir = join(stateDir, "voices");
  const common = (engine: string): ServerOptions & { onFound(): void; idleMs: number; drainMs: number } => ({
    stateDir,
    environment,
    startTimeoutMs: settings.loadTimeoutMs,
    stopGraceMs: settings.stopGraceMs,
    silenceLimitMs: settings.silenceLimitMs,
    idleMs: settings.speechIdleMs,
    drainMs: settings.drainMs,
    now: steadyNow,
    onOutput: outputOf(options, engine, (line) => ({ log: engine, line })),
    onChange: () => events.emit("changed"),
    onFound: () => events.emit("engineFound"),
    warn,
  });
  const transcription = createTranscriptionEngine({
    ...common("whisper-server"),
    explicit: settings.whisperServer,
    enginesDir,
    installCommand: settings.command("engine", "install", "whisper"),
    cacheDir,
    memory: settings.transcriptionMemory,
  });
  const synthesis = createSynthesisEngine({
    ...common("speech"),
    engine: settings.speechEngine,
    explicit: settings.piper,
    enginesDir,
    installCommand: settings.command("engine", "install", "sherpa"),
    voicesDir,
    copiesDir: join(enginesDir, "sherpa-voices"),
  });

  const wanted = (kind: SpeechKind): string | null => document().speech?.[kind] ?? null;
  return {
    voicesDir,
    /** The official voices and transcription models, asked for once an hour at most. */
    lists: createSpeechLists({ client: hub, freshMs: 3_600_000, now: steadyNow }),
    transcription,
    synthesis,
    /** Voices on disk. */
    cachedVoices: () => cachedVoices(voicesDir),
    /** Of a voice on disk. Errors: `engine_failed` where its description is damaged. */
    speakersOf: (voice: string) => voiceConfigOf(voicesDir, voice),
    /** Names of the transcription models on disk. */
    cachedModels: async () => (await cachedTranscriptionModels(cacheDir)).map(({ name }) => name),
    /** The choice that each engine runs with. */
    running: () => ({ transcription: transcription.snapshot().choice, synthesis: synthesis.snapshot().choice }),
    observe: async ({ speech }: Pick<Desired, "speech"> = document()): Promise<SpeechObserved> => {
      const [first, second] = await Promise.all([
        transcription.observe(speech?.transcription ?? null),
        synthesis.observe(speech?.synthesis ?? null),
      ]);
      return { transcription: first, synthesis: second };
    },
    report: () => ({
      transcription: engineReport(wanted("transcription"), transcription.snapshot()),
      synthesis: engineReport(wanted("synthesis"), synthesis.snapshot()),
    }),
    close: () => Promise.all([transcription.close(), synthesis.close()]),
  };
}
