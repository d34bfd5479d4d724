// Brings models into the cache and takes them out, and keeps the inventory of what is ours.
import { statfs } from "node:fs/promises";
import { GatewayError } from "../core/errors.ts";
import { idForm, type ModelId, parseModelId, repoOf } from "../core/ids.ts";
import { steadyNow } from "../core/steady.ts";
import { makeFolder } from "../desired/folder.ts";
import type { Router } from "../engines/router.ts";
import type { HubClient } from "../hub/client.ts";
import { cacheError } from "../hub/errors.ts";
import { importModel, resolveSource } from "../hub/import.ts";
import { createPace, secondsLeft } from "../hub/pace.ts";
import { type PulledModel, pullModel } from "../hub/pull.ts";
import type { CachedModel } from "../plan/observed.ts";
import type { Handlers } from "./executor.ts";
import type { Inventory } from "./inventory.ts";
import { type Removals, removalHandler } from "./model-removal.ts";
import type { RepoTurns } from "./repo-turns.ts";
import type { Drainer } from "./router-actions.ts";

export function modelHandlers(options: {
  readonly cacheDir: string;
  /** Id of this gateway. */
  readonly gateway?: string;
  readonly configPath: string;
  readonly hub: HubClient;
  readonly inventory: Inventory;
  readonly router: Router;
  readonly drainer: Drainer;
  readonly removals: Removals;
  readonly turns: RepoTurns;
  readonly now: () => number;
  /** Whether the document names the model, or does again in a moment. */
  readonly comesBack: (model: string) => Promise<boolean>;
  /** The cache as it is now. */
  readonly cachedModels: () => Promise<readonly CachedModel[]>;
}): Pick<Handlers, "model.pull" | "model.import" | "model.remove"> {
  const { cacheDir, inventory } = options;
  const gateway = options.gateway ?? "";

  async function makeCache(): Promise<void> {
    await makeFolder(cacheDir).catch((error: unknown) => {
      throw cacheError(error, `its own folder ${cacheDir}`);
    });
  }

  async function record(id: string, pulled: PulledModel): Promise<void> {
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
    });
  }

  /** While nobody collects in the model's repository. */
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
    "model.pull": ({ model, revision }, { signal, report }) =>
      inTurn(model, signal, async () => {
        const known = inventory.get(model);
        let comesBack: Promise<boolean> | undefined;
        await pullModel({
          client: options.hub,
          cacheDir,
          gateway,
          vouched: inventory.originIn(repoOf(requireId(model))),
          id: requireId(model),
          ...(revision === undefined ? {} : { revision }),
          ...(known ? { known } : {}),
          // Whatever fails here is planned again; what is not wanted any more is cancelled.
          keepPartial: true,
          isStillWanted: () => (comesBack ??= options.comesBack(model)),
          freeBytes,
          signal,
          beforeShown: (pulled) => record(model, pulled),
          onProgress: (progress) =>
            report({
              phase: progress.phase,
              completed: progress.totalCompleted,
              total: progress.totalBytes,
              file: progress.file,
              digest: progress.digest,
              fileCompleted: progress.completed,
              fileTotal: progress.total,
              bytesPerSecond: progress.bytesPerSecond,
              secondsLeft: progress.secondsLeft,
            }),
        });
      }),
    "model.import": ({ model, source }, { signal, report }) =>
      inTurn(model, signal, async () => {
        const pace = createPace(steadyNow());
        let before = 0;
        await importModel({
          cacheDir,
          gateway,
          vouched: inventory.originIn(repoOf(requireId(model))),
          id: requireId(model),
          source: resolveSource(options.configPath, source),
          freeBytes,
          signal,
          beforeShown: (imported) => record(model, imported),
          onProgress: (completed, total) => {
            const now = steadyNow();
            pace.add(completed - before, now);
            before = completed;
            const bytesPerSecond = pace.bytesPerSecond(now);
            const rest = secondsLeft(total - completed, bytesPerSecond);
            report({ phase: "importing", completed, total, bytesPerSecond, secondsLeft: rest });
          },
        });
      }),
    "model.remove": removalHandler(options),
  };
}

function requireId(model: string): ModelId {
  const id = parseModelId(model);
  if (!id) throw new GatewayError("invalid_request", `${model} is not of the form ${idForm}`);
  return id;
}

/** Bytes free for us where a folder lives; undefined where the filesystem does not say. */
export async function freeBytes(folder: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}
