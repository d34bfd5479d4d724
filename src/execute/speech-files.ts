// Voices and transcription models on the disk: listed, collected if unused, deleted by name. src/cache/report/speech-files.ts
// decides what is unused; cache-gc.ts collects the other garbage of the cache.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { forgetVoice, plainVoices } from "../cache/download/speech-files.ts";
import type { Inventory } from "../cache/inventory/inventory.ts";
import { collectRepo } from "../cache/removal/remove.ts";
import type { RepoTurns } from "../cache/removal/repo-turns.ts";
import { type Collected, type Garbage, othersObstacle, type SkippedRepo } from "../cache/report/garbage.ts";
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
import { GatewayError, toGatewayError } from "../core/errors.ts";
import type { Desired } from "../desired/document/document.ts";
import { keptLicenses } from "../hub/voice-cards.ts";
import type { SpeechKind } from "../plan/observed.ts";
import { modelFileName, transcriptionRepo } from "../speech/transcription-models.ts";
import { isVoiceId, voiceRepo } from "../speech/voices.ts";
import type { Collector } from "./cache-gc.ts";
import type { RemovedFiles } from "./executor.ts";

export interface SpeechStore {
  /** `bytes`: in the cache, each file once. */
  report(survey: CacheSurvey): Promise<{ readonly speech: readonly DiskSpeech[]; readonly bytes: number }>;
  /** The same collector, which also deletes unused speech files. */
  collecting(collector: Collector): Collector;
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

  /** Under the repository's turn, and from a look taken under it. */
  async function underTurn<T>(repo: string, work: (survey: Pick<CacheSurvey, "repos">) => Promise<T>): Promise<T> {
    const release = turns.tryTake(repo);
    if (!release) throw new GatewayError("busy", `${repo} is being pulled from`, { retryAfterMs: 5_000 });
    try {
      const files = await surveyRepo(cacheDir, repo);
      return await work({ repos: files ? [files] : [] });
    } finally {
      release();
    }
  }

  async function discard(going: readonly SpeechFiles[], survey: Pick<CacheSurvey, "repos">): Promise<RemovedFiles> {
    const [files] = survey.repos;
    if (!files || going.length === 0) return { deletedFiles: 0, freedBytes: 0 };
    const { deletedFiles, freedBytes } = await collectRepo({ ...speechGarbage(going, files), cacheDir });
    for (const { kind, name } of going) {
      if (kind === "synthesis") await forgetVoice(voicesDir, name);
      await inventory.removeSpeech({ kind, name });
    }
    return { deletedFiles, freedBytes };
  }

  async function collect(repo: string): Promise<Collected> {
    try {
      return await underTurn(repo, async (survey) => {
        const { repos: found, skipped } = await garbage(survey);
        const going = unusedSpeech(speechFilesOf(survey), await facts());
        if (found.length === 0) return { ...nothing(skipped) };
        return { items: found.flatMap(({ items }) => items), skipped, ...(await discard(going, survey)) };
      });
    } catch (error) {
      const { code, reason, message } = toGatewayError(error);
      const why = code === "busy" ? "BeingPulled" : reason;
      return nothing([{ repo, reason: why, message }]);
    }
  }

  return {
    report: async (survey) => {
      const found = speechFilesOf(survey);
      return { speech: diskSpeech(found, await facts()), bytes: bytesOf(found.flatMap(({ links }) => links)) };
    },
    collecting: (collector) => ({
      look: async () => {
        const look = await collector.look();
        const own = await garbage(look.survey);
        return {
          ...look,
          garbage: {
            repos: [...look.garbage.repos, ...own.repos],
            skipped: [...look.garbage.skipped, ...own.skipped],
          },
        };
      },
      handler: async (action, run) => {
        let sum = await collector.handler(action, run);
        for (const { repo } of kinds) {
          if (run.signal.aborted) throw run.signal.reason;
          const own = await collect(repo);
          sum = {
            items: [...sum.items, ...own.items],
            skipped: [...sum.skipped, ...own.skipped],
            deletedFiles: sum.deletedFiles + own.deletedFiles,
            freedBytes: sum.freedBytes + own.freedBytes,
          };
        }
        return sum;
      },
    }),
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
      const removed = await underTurn(repo, (survey) =>
        discard(
          speechFilesOf(survey).filter((files) => files.name === name),
          survey,
        ),
      );
      return { name, ...removed };
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

function nothing(skipped: readonly SkippedRepo[]): Collected {
  return { items: [], skipped, deletedFiles: 0, freedBytes: 0 };
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
