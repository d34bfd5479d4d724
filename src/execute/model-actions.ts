// Brings models into the cache and takes them out, and keeps the inventory of what is ours.
import type { PulledModel } from "../cache/download/fetch.ts";
import { importModel, resolveSource, sourceStamp } from "../cache/download/import.ts";
import type { PullProgress } from "../cache/download/progress.ts";
import { pullModel } from "../cache/download/pull.ts";
import type { Inventory } from "../cache/inventory/inventory.ts";
import { removeStored } from "../cache/removal/remove.ts";
import type { RepoTurns } from "../cache/removal/repo-turns.ts";
import { GatewayError } from "../core/errors.ts";
import { idForm, type ModelId, parseModelId, repoOf } from "../core/ids.ts";
import type { Router } from "../engines/llama/router.ts";
import type { HubClient } from "../hub/client.ts";
import { orCacheError } from "../hub/errors.ts";
import { readFreeBytes } from "../observe/observe.ts";
import { type CachedModel, findCached, type InventoryEntry, type SourceFile } from "../plan/observed.ts";
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
  const { cacheDir, gateway, inventory } = options;

  const makeCache = (): Promise<void> => orCacheError(`its own folder ${cacheDir}`, () => makeFolder(cacheDir));

  async function record(id: string, pulled: PulledModel, source?: SourceFile): Promise<void> {
    const { repo, tag, revision, commit, files } = pulled;
    const keep = inventory.get(id)?.keep ?? false;
    await inventory.put({
      id,
      repo,
      tag,
      revision,
      commit,
      files,
      addedAt: new Date(options.now()).toISOString(),
      keep,
      ...(source ? { source } : {}),
    });
  }

  /**
   * Runs a pull or import of a model that may be cached already. The router does not detect a replaced file, and would serve
   * the old content on: the model's process is drained and ended before the new files are linked.
   */
  async function replacing(
    model: string,
    signal: AbortSignal,
    { source, verify }: { readonly source?: SourceFile; readonly verify?: boolean | undefined },
    work: (beforeShown: (pulled: PulledModel) => Promise<void>) => Promise<unknown>,
  ): Promise<void> {
    const known = inventory.get(model);
    let readmit: () => void = () => undefined;
    try {
      await work(async (pulled) => {
        const cached = findCached(await options.cachedModels(), model);
        if (cached && (verify === true || !hasSameFiles(known, pulled))) {
          readmit = await options.drainer.drain([cached.upstreamId], signal);
          await options.drainer.abandon(cached.upstreamId);
        }
        await record(model, pulled, source);
        if (source && known) await removeOtherNames(known, pulled);
      });
    } finally {
      readmit();
    }
  }

  /** Two files with one tag are two models, and the old one could get the id. */
  async function removeOtherNames({ id, repo, commit, files }: InventoryEntry, imported: PulledModel): Promise<void> {
    const others = inventory.entries().filter((entry) => entry.repo === repo && entry.id !== id);
    const stays = [imported, ...others].flatMap((entry) => entry.files.map(({ path }) => path));
    const links = files.filter(({ path }) => !stays.includes(path)).map((file) => ({ ...file, commit }));
    if (links.length > 0) await removeStored({ cacheDir, repo, links });
  }

  /** While no garbage collection runs in the model's repository. */
  async function inTurn(model: string, signal: AbortSignal, task: () => Promise<void>): Promise<void> {
    await makeCache();
    const release = await options.turns.take(repoOf(requireId(model)), signal);
    try {
      await task();
    } finally {
      release();
    }
  }

  return {
    "model.pull": ({ model, revision, verify }, { signal, report }) =>
      inTurn(model, signal, async () => {
        const id = requireId(model);
        await replacing(model, signal, { verify }, (beforeShown) =>
          pullModel({
            client: options.hub,
            cacheDir,
            gateway,
            vouched: inventory.originIn(repoOf(id)),
            verify,
            id,
            ...(revision === undefined ? {} : { revision }),
            // Whatever fails here is planned again; what is not wanted any more is cancelled.
            isStillWanted: () => options.isWanted(model),
            freeBytes,
            signal,
            beforeShown,
            onProgress: (progress) => report(actionProgress(progress)),
          }),
        );
        if (verify) options.onVerified(repoOf(id));
      }),
    "model.import": ({ model, source, verify }, { signal, report }) =>
      inTurn(model, signal, async () => {
        const id = requireId(model);
        const path = resolveSource(options.configPath, source);
        const stamp = (await sourceStamp(path)) ?? "";
        await replacing(model, signal, { source: { path, stamp }, verify }, (beforeShown) =>
          importModel({
            cacheDir,
            gateway,
            vouched: inventory.originIn(repoOf(id)),
            verify,
            id,
            source: path,
            freeBytes,
            signal,
            beforeShown,
            onProgress: (progress) => report({ ...actionProgress(progress), phase: "importing" }),
          }),
        );
        if (verify) options.onVerified(repoOf(id));
      }),
    "model.remove": removalHandler(options),
  };
}

function hasSameFiles(known: InventoryEntry | undefined, { files }: PulledModel): boolean {
  const blobs = new Set(known?.files.map(({ blob }) => blob));
  return files.every(({ blob }) => blobs.has(blob));
}

function requireId(model: string): ModelId {
  const id = parseModelId(model);
  if (!id) throw new GatewayError("invalid_request", `${model} is not of the form ${idForm}`);
  return id;
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
