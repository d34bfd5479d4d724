// Garbage collection of our files in the model cache: one repository after the other, each only while no pull uses it.
// src/cache/report/garbage.ts decides what is garbage.

import { forgetVoice } from "../cache/download/speech-files.ts";
import type { Inventory } from "../cache/inventory/inventory.ts";
import { removeFiles } from "../cache/removal/remove.ts";
import type { RepoTurns } from "../cache/removal/repo-turns.ts";
import { beingPulled, type Collected, findGarbage, type Garbage, type GarbageInput } from "../cache/report/garbage.ts";
import type { CacheSurvey } from "../cache/report/repo-files.ts";
import { rememberedEntry } from "../cache/report/stored.ts";
import { surveyCache, surveyRepo } from "../cache/scan/survey.ts";
import { toGatewayError } from "../core/errors.ts";
import type { Desired } from "../desired/document/document.ts";
import { keptLicenses } from "../hub/voice-cards.ts";
import {
  type CachedModel,
  type Knowable,
  loadedModels,
  type RouterSnapshot,
  type SpeechKind,
} from "../plan/observed.ts";
import type { ActionRun } from "./executor.ts";

export interface Look extends GarbageInput {
  readonly garbage: Garbage;
}

export type Collector = ReturnType<typeof createCollector>;

export function createCollector(options: {
  readonly cacheDir: string;
  /** Id of this gateway. */
  readonly gateway: string;
  readonly inventory: Inventory;
  readonly voicesDir: string;
  /** What each engine of speech runs with. */
  readonly running: () => Readonly<Record<SpeechKind, string | null>>;
  readonly desired: () => Desired;
  readonly router: () => Pick<RouterSnapshot, "phase" | "models">;
  readonly turns: RepoTurns;
  readonly now: () => number;
  /** The cache as it is now; throws where it is unknown, as an unplugged disk is no garbage. */
  readonly cachedModels: () => Promise<readonly CachedModel[]>;
}) {
  const { cacheDir, gateway, inventory, turns, voicesDir } = options;

  async function lookAt(survey: () => Promise<CacheSurvey>, busy: readonly string[]): Promise<Look> {
    const input = {
      models: await options.cachedModels(),
      survey: await survey(),
      inventory: inventory.entries(),
      desired: options.desired(),
      speech: { running: options.running(), ours: inventory.hasSpeech, licenses: await keptLicenses(voicesDir) },
      loaded: loadedIn(options.router()),
      busy,
      now: options.now(),
    };
    return { ...input, garbage: findGarbage(input) };
  }

  /** Looks only. Errors: `cache_unwritable` where the cache cannot be read. */
  const look = (): Promise<Look> => lookAt(() => surveyCache(cacheDir, gateway), turns.taken());

  /** Under the repository's turn, and from a survey made under it. */
  async function collect(repo: string): Promise<Collected> {
    const release = turns.tryTake(repo);
    if (!release) return { ...nothing, skipped: [{ repo, ...beingPulled }] };
    try {
      const survey = async () => {
        const files = await surveyRepo(cacheDir, repo, gateway);
        return { repos: files ? [files] : [], unreadable: [] };
      };
      const { repos, skipped } = (await lookAt(survey, [])).garbage;
      const [going] = repos;
      if (!going) return { ...nothing, skipped: [...skipped] };
      const removed = await removeFiles({ ...going, cacheDir });
      for (const { kind, name } of going.speech) {
        if (kind === "synthesis") await forgetVoice(voicesDir, name);
        await inventory.removeSpeech({ kind, name });
      }
      const left = await surveyRepo(cacheDir, repo, gateway);
      await inventory.review(repo, (entry) => rememberedEntry(entry, left, going.blobs));
      return { items: [...going.items], skipped: [], ...removed };
    } catch (error) {
      // One folder that refuses holds up no other.
      const { reason, message } = toGatewayError(error);
      return { ...nothing, skipped: [{ repo, reason, message }] };
    } finally {
      release();
    }
  }

  return {
    look,
    handler: async (_action: unknown, { signal, report }: ActionRun) => {
      const { repos, skipped } = (await look()).garbage;
      const results: Collected[] = [{ ...nothing, skipped: [...skipped] }];
      for (const [index, { repo }] of repos.entries()) {
        if (signal.aborted) throw signal.reason;
        report({ phase: "collecting", completed: index, total: repos.length });
        results.push(await collect(repo));
      }
      return { collected: total(results) };
    },
  };
}

const nothing: Collected = { items: [], skipped: [], deletedFiles: 0, freedBytes: 0 };

function total(results: readonly Collected[]): Collected {
  return {
    items: results.flatMap(({ items }) => items),
    skipped: results.flatMap(({ skipped }) => skipped),
    deletedFiles: results.reduce((sum, { deletedFiles }) => sum + deletedFiles, 0),
    freedBytes: results.reduce((sum, { freedBytes }) => sum + freedBytes, 0),
  };
}

/** Of a router that does not run nothing is loaded. */
function loadedIn({ phase, models }: Pick<RouterSnapshot, "phase" | "models">): Knowable<readonly string[]> {
  if (phase === "stopped") return { state: "known", value: [] };
  return models.state === "unknown" ? models : { state: "known", value: loadedModels(models.value) };
}
