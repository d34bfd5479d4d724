// Brings voices and transcription models into the cache, and starts and stops the engines that use them.

import type { PullProgress } from "../cache/download/progress.ts";
import type { Mirror } from "../cache/download/sources.ts";
import { pullTranscriptionModel, pullVoice } from "../cache/download/speech-files.ts";
import type { SpeechLists } from "../cache/download/speech-lists.ts";
import type { Inventory } from "../cache/inventory/inventory.ts";
import type { RepoTurns } from "../cache/removal/repo-turns.ts";
import { GatewayError } from "../core/errors.ts";
import type { SpeechEngine } from "../engines/speech/speech-engine.ts";
import type { HubClient } from "../hub/client.ts";
import type { SpeechKind } from "../plan/observed.ts";
import { transcriptionRepo } from "../speech/transcription-models.ts";
import { voiceRepo } from "../speech/voices.ts";
import type { ActionRun, Handlers } from "./executor.ts";
import { actionProgress, freeBytes } from "./model-actions.ts";

export function speechHandlers(options: {
  readonly cacheDir: string;
  /** Id of this gateway. */
  readonly gateway: string;
  readonly voicesDir: string;
  readonly hub: HubClient;
  readonly mirror: Mirror | null;
  readonly lists: SpeechLists;
  readonly turns: Pick<RepoTurns, "take">;
  readonly inventory: Pick<Inventory, "addSpeech">;
  readonly engines: Readonly<Record<SpeechKind, SpeechEngine>>;
  /** Whether the document names it. */
  readonly isWanted: (kind: SpeechKind, choice: string) => boolean;
}): Pick<Handlers, "voice.pull" | "transcription.pull" | "speech.start" | "speech.stop"> {
  const { cacheDir, voicesDir, hub, lists, engines, turns, inventory } = options;
  const pulling = ({ signal, report }: ActionRun, kind: SpeechKind, choice: string) => ({
    client: hub,
    mirror: options.mirror,
    cacheDir,
    gateway: options.gateway,
    // Whatever fails here is planned again; what is not wanted any more is cancelled.
    isStillWanted: () => options.isWanted(kind, choice),
    freeBytes,
    signal,
    onProgress: (progress: PullProgress) => report(actionProgress(progress)),
  });
  return {
    "voice.pull": async ({ voice }, run) => {
      const found = await lists.officialVoice(voice, run.signal);
      // The document is to say how it is called: by another name it would be fetched for ever.
      if (found.key !== voice) throw new GatewayError("voice_not_found", `${voice} is called ${found.key}`);
      const release = await turns.take(voiceRepo, run.signal);
      const pulled = await pullVoice(found, { ...pulling(run, "synthesis", voice), voicesDir }).finally(release);
      // What was there already is another program's.
      if (pulled.downloadedBytes > 0) await inventory.addSpeech({ kind: "synthesis", name: voice });
    },
    "transcription.pull": async ({ file }, run) => {
      const release = await turns.take(transcriptionRepo, run.signal);
      const pulled = await pullTranscriptionModel(file, pulling(run, "transcription", file)).finally(release);
      if (pulled.downloadedBytes > 0) await inventory.addSpeech({ kind: "transcription", name: file });
    },
    "speech.start": ({ engine, choice }, { signal }) => engines[engine].start(choice, signal),
    "speech.stop": ({ engine }, { signal }) => engines[engine].stop(signal),
  };
}
