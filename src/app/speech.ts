// The parts of speech, wired: its two engines and the official lists. Starts nothing.
import { join } from "node:path";
import { cachedTranscriptionModels, cachedVoices, voiceConfigOf } from "../cache/download/speech-files.ts";
import { createSpeechLists, type SpeechLists } from "../cache/download/speech-lists.ts";
import type { Inventory } from "../cache/inventory/inventory.ts";
import type { RepoTurns } from "../cache/removal/repo-turns.ts";
import type { Desired } from "../desired/document/document.ts";
import type { ServerOptions } from "../engines/process/server-process.ts";
import type { SpeechEngine } from "../engines/speech/speech-engine.ts";
import { createSynthesisEngine } from "../engines/speech/synthesis-engine.ts";
import { createTranscriptionEngine } from "../engines/speech/transcription-engine.ts";
import type { VoiceRun } from "../engines/speech/voice-process.ts";
import type { WhisperRun } from "../engines/speech/whisper.ts";
import { speechHandlers } from "../execute/speech-actions.ts";
import { createSpeechStore, type SpeechStore } from "../execute/speech-files.ts";
import type { HubClient } from "../hub/client.ts";
import type { SpeechKind, SpeechObserved } from "../plan/observed.ts";
import type { Settings } from "../settings/settings.ts";
import type { Speakers } from "../speech/voice-config.ts";
import type { StatusReport } from "../status/report.ts";
import type { Events } from "./events.ts";
import type { Warn } from "./warn.ts";

/** How old the official lists of voices and transcription models may be. */
const listsFreshMs = 3_600_000;

export interface Speech {
  readonly voicesDir: string;
  /** Where the embedded engine's copies of voices lie. */
  readonly copiesDir: string;
  /** The official voices and transcription models. */
  readonly lists: SpeechLists;
  readonly transcription: SpeechEngine<WhisperRun>;
  readonly synthesis: SpeechEngine<VoiceRun>;
  /** What is on disk. */
  cachedVoices(): Promise<readonly string[]>;
  cachedModels(): Promise<readonly string[]>;
  /** Of a voice on disk. Throws `engine_failed` where its description is damaged. */
  speakersOf(voice: string): Promise<Speakers>;
  /** What each engine runs with. */
  running(): Readonly<Record<SpeechKind, string | null>>;
  observe(): Promise<SpeechObserved>;
  report(): StatusReport["speech"];
  close(): Promise<void>;
}

/** Where voices lie for Piper, and where the embedded engine's copies of them. */
export function speechFolders(stateDir: string): { readonly voicesDir: string; readonly copiesDir: string } {
  return { voicesDir: join(stateDir, "voices"), copiesDir: join(stateDir, "engines", "sherpa-voices") };
}

export function createSpeech(options: {
  readonly settings: Settings;
  readonly events: Events;
  readonly hub: HubClient;
  readonly document: () => Desired;
  readonly now: () => number;
  readonly onOutput: (engine: string, text: string) => void;
  readonly warn: Warn;
}): Speech {
  const { settings, events, document, now, warn } = options;
  const { stateDir, cacheDir, environment } = settings;
  const enginesDir = join(stateDir, "engines");
  const { voicesDir, copiesDir } = speechFolders(stateDir);
  const common = (engine: string): ServerOptions & { onFound(): void; idleMs: number; drainMs: number } => ({
    stateDir,
    environment,
    startTimeoutMs: settings.loadTimeoutMs,
    stopGraceMs: settings.stopGraceMs,
    silenceLimitMs: settings.silenceLimitMs,
    idleMs: settings.speechIdleMs,
    drainMs: settings.drainMs,
    now,
    onOutput: (text) => options.onOutput(engine, text),
    onChange: () => events.emit({ type: "changed", what: "speech" }),
    onFound: () => events.emit({ type: "engineFound" }),
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
    copiesDir,
  });

  function reportOf(kind: SpeechKind): StatusReport["speech"][SpeechKind] {
    const choice = document().speech?.[kind] ?? null;
    if (choice === null) return null;
    const { phase, pid, users, crashes, choice: running } = { transcription, synthesis }[kind].snapshot();
    return { choice, running, phase, pid, inFlight: users, crashes: crashes.length };
  }

  const lists = createSpeechLists({ client: options.hub, stateDir, voicesDir, freshMs: listsFreshMs, now });
  return {
    voicesDir,
    copiesDir,
    lists,
    transcription,
    synthesis,
    cachedVoices: () => cachedVoices(voicesDir),
    speakersOf: (voice) => voiceConfigOf(voicesDir, voice),
    cachedModels: async () => (await cachedTranscriptionModels(cacheDir)).map(({ name }) => name),
    running: () => ({
      transcription: transcription.snapshot().choice,
      synthesis: synthesis.snapshot().choice,
    }),
    observe: async () => {
      const { speech } = document();
      const [first, second] = await Promise.all([
        transcription.observe(speech?.transcription ?? null),
        synthesis.observe(speech?.synthesis ?? null),
      ]);
      return { transcription: first, synthesis: second };
    },
    report: () => ({ transcription: reportOf("transcription"), synthesis: reportOf("synthesis") }),
    close: async () => {
      await Promise.all([transcription.close(), synthesis.close()]);
    },
  };
}

/** What speech has on the disk, and the actions that change it. */
export function createSpeechStorage(options: {
  readonly settings: Settings;
  readonly speech: Speech;
  readonly hub: HubClient;
  readonly turns: RepoTurns;
  readonly inventory: Inventory;
  /** Of this gateway, among others that share the cache. */
  readonly gateway: string;
  readonly desired: () => Desired;
  readonly now: () => number;
}): { readonly files: SpeechStore; readonly handlers: ReturnType<typeof speechHandlers> } {
  const { speech, hub, inventory, turns, settings } = options;
  const { cacheDir } = settings;
  const { voicesDir, copiesDir, lists, running } = speech;
  return {
    files: createSpeechStore({ ...options, cacheDir, voicesDir, copiesDir, inventory, running }),
    handlers: speechHandlers({
      ...options,
      isWanted: (kind, choice) => options.desired().speech?.[kind] === choice,
      cacheDir,
      voicesDir,
      hub,
      lists,
      engines: speech,
      turns,
      inventory,
    }),
  };
}
