// Brings models into the cache and takes them out, and keeps the inventory of what is ours.
import { readFreeBytes } from "../cache/download/disk-space.ts";
import type { PulledModel } from "../cache/download/fetch.ts";
import { type ImportOptions, importModel } from "../cache/download/import.ts";
import { resolveSource, sourceStamp } from "../cache/download/import-source.ts";
import type { PullProgress } from "../cache/download/progress.ts";
import { pullModel } from "../cache/download/pull.ts";
import type { Mirror } from "../cache/download/sources.ts";
import type { Inventory } from "../cache/inventory/inventory.ts";
import { removeFiles } from "../cache/removal/remove.ts";
import type { RepoTurns } from "../cache/removal/repo-turns.ts";
import { storedLinks } from "../cache/report/stored.ts";
import { surveyRepo } from "../cache/scan/survey.ts";
import { GatewayError } from "../core/errors.ts";
import { idForm, parseModelId, repoOf } from "../core/ids.ts";
import type { Router } from "../engines/llama/router.ts";
import type { HubClient } from "../hub/client.ts";
import { orCacheError } from "../hub/errors.ts";
import { findCached } from "../plan/find-model.ts";
import type { CachedModel, InventoryEntry, SourceFile } from "../plan/observed.ts";
import { makeFolder } from "../state/folder.ts";
import type { ActionRun, Handlers } from "./executor.ts";
import { type Removals, removalHandler } from "./model-removal.ts";
import type { Drainer } from "./router-actions.ts";

export function modelHandlers(options: {
  readonly cacheDir: string;
  /** Id of this gateway. */
  readonly gateway: string;
  readonly configPath: string;
  readonly hub: HubClient;
  readonly mirror: Mirror | null;
  readonly inventory: Inventory;
  readonly router: Router;
  /** `abandon` ends a model's process. */
  readonly drainer: Drainer & { abandon(upstreamId: string): Promise<void> };
  readonly removals: Removals;
  readonly turns: RepoTurns;
  readonly now: () => number;
  /** Whether the document names the model. */
  readonly isWanted: (model: string) => boolean;
  /** The cache as it is now. */
  readonly cachedModels: () => Promise<readonly CachedModel[]>;
  /** A repository's files were verified. */
  readonly onVerified: (repo: string) => void;
}): Pick<Handlers, "model.pull" | "model.import" | "model.remove"> {
  const { cacheDir, inventory, drainer } = options;

  /**
   * Runs a pull or import of a model that may be cached already, while no garbage collection runs in its repository. The router
   * does not detect a replaced file, and would serve the old content on: the model's process is drained and ended before the
   * new files are linked.
   */
  async function bring(
    { model, verify }: { readonly model: string; readonly verify?: boolean | undefined },
    { signal, report }: ActionRun,
    source: SourceFile | undefined,
    work: (common: Omit<ImportOptions, "source" | "tuning">) => Promise<unknown>,
  ): Promise<void> {
    await orCacheError(`its own folder ${cacheDir}`, () => makeFolder(cacheDir));
    const id = parseModelId(model);
    if (!id) throw new GatewayError("invalid_request", `${model} is not of the form ${idForm}`);
    const repo = repoOf(id);
    const release = await options.turns.take(repo, signal);
    const known = inventory.get(model);
    let readmit: () => void = () => undefined;
    try {
      await work({
        cacheDir,
        gateway: options.gateway,
        vouched: inventory.originIn(repo),
        verify,
        id,
        freeBytes,
        signal,
        beforeShown: async (pulled) => {
          const cached = findCached(await options.cachedModels(), model);
          if (cached && (verify === true || !hasSameFiles(known, pulled))) {
            readmit = await drainer.drain([cached.upstreamId], signal);
            await drainer.abandon(cached.upstreamId);
          }
          const { tag, revision, commit, files } = pulled;
          const addedAt = new Date(options.now()).toISOString();
          const keep = inventory.get(model)?.keep ?? false;
          await inventory.put({
            id: model,
            repo,
            tag,
            revision,
            commit,
            files,
            addedAt,
            keep,
            ...(source && { source }),
          });
          if (source && known) await removeOtherNames(known, pulled);
        },
        onProgress: (progress) => report({ ...actionProgress(progress), ...(source && { phase: "importing" }) }),
      });
    } finally {
      readmit();
      release();
    }
    if (verify) options.onVerified(repo);
  }

  /** Two files with one tag are two models, and the old one could get the id. */
  async function removeOtherNames({ id, repo, commit, files }: InventoryEntry, imported: PulledModel): Promise<void> {
    const others = inventory.entries().filter((entry) => entry.repo === repo && entry.id !== id);
    const stays = [imported, ...others].flatMap((entry) => entry.files.map(({ path }) => path));
    const gone = files.filter(({ path }) => !stays.includes(path));
    if (gone.length === 0) return;
    const stored = storedLinks(await surveyRepo(cacheDir, repo), gone, new Set([commit]));
    await removeFiles({ cacheDir, repo, ...stored });
  }

  return {
    "model.pull": (action, run) =>
      bring(action, run, undefined, (common) =>
        pullModel({
          ...common,
          client: options.hub,
          mirror: options.mirror,
          ...(action.revision === undefined ? {} : { revision: action.revision }),
          // Whatever fails here is planned again; what is not wanted any more is cancelled.
          isStillWanted: () => options.isWanted(action.model),
        }),
      ),
    "model.import": async (action, run) => {
      const path = resolveSource(options.configPath, action.source);
      const stamp = (await sourceStamp(path)) ?? "";
      await bring(action, run, { path, stamp }, (common) => importModel({ ...common, source: path }));
    },
    "model.remove": removalHandler(options),
  };
}

function hasSameFiles(known: InventoryEntry | undefined, { files }: PulledModel): boolean {
  const blobs = new Set(known?.files.map(({ blob }) => blob));
  return files.every(({ blob }) => blobs.has(blob));
}

/** Progress of an action, by that of its pull. */
export function actionProgress(progress: PullProgress): Parameters<ActionRun["report"]>[0] {
  const { completed, total, totalCompleted, totalBytes, ...rest } = progress;
  return { ...rest, completed: totalCompleted, total: totalBytes, fileCompleted: completed, fileTotal: total };
}

/** Undefined where the file system does not report it. */
export async function freeBytes(folder: string): Promise<number | undefined> {
  const found = await readFreeBytes(folder);
  return found.state === "known" ? found.value : undefined;
}
