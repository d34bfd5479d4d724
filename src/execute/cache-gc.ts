// Garbage collection of our files in the model cache: one repository after the other, each only while no pull uses it.
// src/cache/report/garbage.ts decides what is garbage.

import type { Inventory } from "../cache/inventory/inventory.ts";
import { removeFiles } from "../cache/removal/remove.ts";
import type { RepoTurns } from "../cache/removal/repo-turns.ts";
import {
  type Collected,
  findGarbage,
  type Garbage,
  type RepoGarbage,
  type SkippedRepo,
} from "../cache/report/garbage.ts";
import type { CacheSurvey } from "../cache/report/repo-files.ts";
import { rememberedEntry } from "../cache/report/stored.ts";
import { surveyCache, surveyRepo } from "../cache/scan/survey.ts";
import { GatewayError, systemCode, toGatewayError } from "../core/errors.ts";
import type { Desired } from "../desired/document/document.ts";
import type { CachedModel, RouterSnapshot } from "../plan/observed.ts";
import type { Handlers } from "./executor.ts";
import type { SpeechStore } from "./speech-files.ts";

export interface Look {
  readonly models: readonly CachedModel[];
  readonly survey: CacheSurvey;
  readonly garbage: Garbage;
}

export interface Collector {
  /** Looks only. Errors: `cache_unwritable` where the cache cannot be read. */
  look(): Promise<Look>;
  readonly handler: Handlers["cache.gc"];
}

export function createCollector(options: {
  readonly cacheDir: string;
  /** Id of this gateway. */
  readonly gateway: string;
  readonly inventory: Inventory;
  readonly speech: Pick<SpeechStore, "garbage" | "forgetUnused">;
  readonly desired: () => Desired;
  readonly router: () => Pick<RouterSnapshot, "phase" | "models">;
  readonly turns: RepoTurns;
  readonly now: () => number;
  /** The cache as it is now. */
  readonly cachedModels: () => Promise<readonly CachedModel[]>;
}): Collector {
  const { cacheDir, gateway, inventory, turns } = options;

  async function look(): Promise<Look> {
    // Both readings throw where the cache is unknown: an unplugged disk is no garbage.
    const models = await options.cachedModels();
    const survey = await surveyCache(cacheDir, gateway).catch((error: unknown) => {
      throw new GatewayError("cache_unwritable", `the model cache ${cacheDir} cannot be read (${systemCode(error)})`, {
        cause: error,
      });
    });
    return { models, survey, garbage: await find(survey, models, turns.taken()) };
  }

  async function find(survey: CacheSurvey, models: readonly CachedModel[], busy: readonly string[]): Promise<Garbage> {
    const ofModels = findGarbage({
      survey,
      models,
      inventory: inventory.entries(),
      desired: options.desired(),
      loaded: loadedModels(options.router()),
      busy,
      now: options.now(),
    });
    const ofSpeech = await options.speech.garbage(survey);
    return {
      repos: [...ofModels.repos, ...ofSpeech.repos],
      skipped: [...ofModels.skipped, ...ofSpeech.skipped],
    };
  }

  /** Under the repository's turn, and from a survey made under it. */
  async function collect(repo: string): Promise<Collected> {
    const release = turns.tryTake(repo);
    if (!release) return nothing([{ repo, reason: "BeingPulled", message: "a pull or import of it is under way" }]);
    try {
      const files = await surveyRepo(cacheDir, repo, gateway);
      const survey = { repos: files ? [files] : [], unreadable: [] };
      const { repos, skipped } = await find(survey, await options.cachedModels(), []);
      const results = [nothing(skipped)];
      for (const garbage of repos) results.push(await remove(garbage, survey));
      return total(results);
    } catch (error) {
      // One folder that refuses holds up no other.
      const { reason, message } = toGatewayError(error);
      return nothing([{ repo, reason, message }]);
    } finally {
      release();
    }
  }

  async function remove(garbage: RepoGarbage, survey: CacheSurvey): Promise<Collected> {
    const { repo, items } = garbage;
    const removed = await removeFiles({ ...garbage, cacheDir });
    if (items.some(({ kind }) => kind === "speech")) await options.speech.forgetUnused(survey);
    const left = await surveyRepo(cacheDir, repo, gateway);
    await inventory.review(repo, (entry) => rememberedEntry(entry, left, garbage.blobs));
    return { items, skipped: [], ...removed };
  }

  return {
    look,
    handler: async (_action, { signal, report }) => {
      const { garbage } = await look();
      const repos = [...new Set(garbage.repos.map(({ repo }) => repo))];
      const results = [nothing(garbage.skipped)];
      for (const [index, repo] of repos.entries()) {
        if (signal.aborted) throw signal.reason;
        report({ phase: "collecting", completed: index, total: repos.length });
        results.push(await collect(repo));
      }
      const collected = total(results);
      return { collected: { ...collected, skipped: eachOnce(collected.skipped) } };
    },
  };
}

function nothing(skipped: readonly SkippedRepo[]): Collected {
  return { items: [], skipped, deletedFiles: 0, freedBytes: 0 };
}

function total(results: readonly Collected[]): Collected {
  return {
    items: results.flatMap(({ items }) => items),
    skipped: results.flatMap(({ skipped }) => skipped),
    deletedFiles: results.reduce((sum, { deletedFiles }) => sum + deletedFiles, 0),
    freedBytes: results.reduce((sum, { freedBytes }) => sum + freedBytes, 0),
  };
}

/** A repository is surveyed twice. */
function eachOnce(skipped: readonly SkippedRepo[]): SkippedRepo[] {
  return [...new Map(skipped.map((entry) => [JSON.stringify(entry), entry])).values()];
}

/** Of a router that does not run nothing is loaded. */
function loadedModels({ phase, models }: Pick<RouterSnapshot, "phase" | "models">) {
  if (phase === "stopped") return { state: "known" as const, value: [] };
  if (models.state === "unknown") return models;
  return {
    state: "known" as const,
    value: models.value.filter(({ value }) => value !== "unloaded").map(({ id }) => id),
  };
}
