// Voices and transcription models on the disk: listed, found unused, deleted by name. src/cache/report/speech-files.ts decides what
// is unused; cache-gc.ts deletes it, with the other garbage of the cache.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { forgetVoice, plainVoices } from "../cache/download/speech-files.ts";
import type { Inventory } from "../cache/inventory/inventory.ts";
import { type RemovedFiles, removeFiles } from "../cache/removal/remove.ts";
import type { RepoTurns } from "../cache/removal/repo-turns.ts";
import { type Garbage, othersObstacle } from "../cache/report/garbage.ts";
import { bytesOf, type CacheSurvey } from "../cache/report/repo-files.ts";
import {
  type DiskSpeech,
  diskSpeech,
  type SpeechFacts,
  type SpeechFiles,
  speechFilesOf,
  speechGarbage,
  unusedSpeech,
} from "../cache/report/speech-files.ts";
import { surveyRepo } from "../cache/scan/survey.ts";
import { GatewayError } from "../core/errors.ts";
import type { Desired } from "../desired/document/document.ts";
import { keptLicenses } from "../hub/voice-cards.ts";
import type { SpeechKind } from "../plan/observed.ts";
import { modelFileName, transcriptionRepo } from "../speech/transcription-models.ts";
import { isVoiceId, voiceRepo } from "../speech/voices.ts";

export interface SpeechStore {
  /** `bytes`: in the cache, each file once. */
  report(survey: CacheSurvey): Promise<{ readonly speech: readonly DiskSpeech[]; readonly bytes: number }>;
  /** Unused files that this gateway fetched. */
  garbage(survey: Pick<CacheSurvey, "repos">): Promise<Garbage>;
  /** After their deletion; `survey`: from before it. */
  forgetUnused(survey: Pick<CacheSurvey, "repos">): Promise<void>;
  /** Whether a name (`NAME`, `OWNER/REPO:NAME`) is that of a voice or a model here. Throws `cache_unwritable`. */
  has(name: string): Promise<boolean>;
  /**
   * Deletes a voice or a model, also of another program; null if there is none of that name.
   * Throws `invalid_request` for one that the document names, `busy` while it is being fetched, `cache_unwritable`.
   */
  remove(name: string): Promise<(RemovedFiles & { readonly name: string }) | null>;
}

const kinds = [
  // Short as in the document, or whole.
  { kind: "transcription", repo: transcriptionRepo, nameOf: modelFileName },
  { kind: "synthesis", repo: voiceRepo, nameOf: (name: string) => (isVoiceId(name) ? name : null) },
] as const;

export function createSpeechStore(options: {
  readonly cacheDir: string;
  readonly voicesDir: string;
  /** Where the embedded engine's copies lie. */
  readonly copiesDir: string;
  readonly inventory: Inventory;
  readonly desired: () => Pick<Desired, "speech">;
  readonly running: () => Readonly<Record<SpeechKind, string | null>>;
  readonly turns: RepoTurns;
  readonly now: () => number;
}): SpeechStore {
  const { cacheDir, voicesDir, copiesDir, inventory, turns } = options;

  async function facts(): Promise<SpeechFacts> {
    return {
      desired: options.desired(),
      running: options.running(),
      ours: inventory.hasSpeech,
      plainVoices: await plainVoices(voicesDir),
      copies: await copiesIn(copiesDir),
      licenses: await keptLicenses(voicesDir),
    };
  }

  async function garbage(survey: Pick<CacheSurvey, "repos">): Promise<Garbage> {
    const unused = unusedSpeech(speechFilesOf(survey), await facts());
    const found: Garbage = { repos: [], skipped: [] };
    return survey.repos.reduce((sum, files) => {
      const going = unused.filter(({ repo }) => repo === files.repo);
      if (going.length === 0) return sum;
      const obstacle = othersObstacle(files, options.now());
      if (obstacle) return { ...sum, skipped: [...sum.skipped, { repo: files.repo, ...obstacle }] };
      return { ...sum, repos: [...sum.repos, speechGarbage(going, files)] };
    }, found);
  }

  async function find(asked: string): Promise<Named | null> {
    for (const { kind, repo, nameOf } of kinds) {
      const name = nameOf(asked.startsWith(`${repo}:`) ? asked.slice(repo.length + 1) : asked);
      if (name === null) continue;
      const bytes = kind === "synthesis" ? (await plainVoices(voicesDir)).get(name) : undefined;
      if (bytes !== undefined) return { kind, repo, name, bytes };
      const files = await surveyRepo(cacheDir, repo);
      if (files && speechFilesOf({ repos: [files] }).some((each) => each.name === name))
        return { kind, repo, name, bytes: null };
    }
    return null;
  }

  async function forget(gone: readonly SpeechFiles[]): Promise<void> {
    for (const { kind, name } of gone) {
      if (kind === "synthesis") await forgetVoice(voicesDir, name);
      await inventory.removeSpeech({ kind, name });
    }
  }

  /** Under the repository's turn, and from a survey made under it. */
  async function removeNamed(repo: string, name: string): Promise<RemovedFiles> {
    const release = turns.tryTake(repo);
    if (!release) throw new GatewayError("busy", `${repo} is being pulled from`, { retryAfterMs: 5_000 });
    try {
      const files = await surveyRepo(cacheDir, repo);
      const going = files ? speechFilesOf({ repos: [files] }).filter((each) => each.name === name) : [];
      if (!files || going.length === 0) return { deletedFiles: 0, freedBytes: 0 };
      const removed = await removeFiles({ ...speechGarbage(going, files), cacheDir });
      await forget(going);
      return removed;
    } finally {
      release();
    }
  }

  return {
    report: async (survey) => {
      const found = speechFilesOf(survey);
      return { speech: diskSpeech(found, await facts()), bytes: bytesOf(found.flatMap(({ links }) => links)) };
    },
    garbage,
    forgetUnused: async (survey) => forget(unusedSpeech(speechFilesOf(survey), await facts())),
    has: async (asked) => (await find(asked)) !== null,
    remove: async (asked) => {
      const found = await find(asked);
      if (!found) return null;
      const { kind, repo, name, bytes } = found;
      if (options.desired().speech?.[kind] === name || options.running()[kind] === name)
        throw new GatewayError(
          "invalid_request",
          `${name} is what ${kind} runs with: name another one in the document first, or turn ${kind} off`,
        );
      if (bytes !== null) return { name, deletedFiles: await forgetVoice(voicesDir, name), freedBytes: bytes };
      return { name, ...(await removeNamed(repo, name)) };
    },
  };
}

interface Named {
  readonly kind: SpeechKind;
  readonly repo: string;
  readonly name: string;
  /** Of a voice that was put into its folder by hand; null for what lies in the cache. */
  readonly bytes: number | null;
}

/** By voice: the bytes of its copy. */
async function copiesIn(copiesDir: string): Promise<Map<string, number>> {
  const copies = new Map<string, number>();
  for (const name of await readdir(copiesDir).catch(() => [])) {
    const voice = /^(.+)-[0-9a-f]{12}$/.exec(name)?.[1];
    const copy = await stat(join(copiesDir, name, "voice.onnx")).catch(() => null);
    if (voice !== undefined && copy) copies.set(voice, copy.size);
  }
  return copies;
}
