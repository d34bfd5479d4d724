// Brings models into the cache and takes them out, and keeps the inventory of what is ours.
import { mkdir, statfs } from "node:fs/promises";
import { GatewayError } from "../core/errors.ts";
import { type ModelId, parseModelId } from "../core/ids.ts";
import type { Router } from "../engines/router.ts";
import type { HubClient } from "../hub/client.ts";
import { cacheError } from "../hub/errors.ts";
import { importModel, resolveSource } from "../hub/import.ts";
import { type PulledModel, pullModel } from "../hub/pull.ts";
import type { CachedModel } from "../plan/observed.ts";
import type { Handlers } from "./executor.ts";
import type { Inventory } from "./inventory.ts";
import { type Removals, removalHandler } from "./model-removal.ts";
import type { Drainer } from "./router-actions.ts";

export function modelHandlers(options: {
  readonly cacheDir: string;
  readonly configPath: string;
  readonly hub: HubClient;
  readonly inventory: Inventory;
  readonly router: Router;
  readonly drainer: Drainer;
  readonly removals: Removals;
  readonly now: () => number;
  /** The cache as it is now. */
  readonly cachedModels: () => Promise<readonly CachedModel[]>;
}): Pick<Handlers, "model.pull" | "model.import" | "model.remove"> {
  const { cacheDir, inventory } = options;

  async function makeCache(): Promise<void> {
    await mkdir(cacheDir, { recursive: true }).catch((error: unknown) => {
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

  return {
    "model.pull": async ({ model, revision }, { signal, report }) => {
      await makeCache();
      const known = inventory.get(model);
      const pulled = await pullModel({
        client: options.hub,
        cacheDir,
        id: requireId(model),
        ...(revision === undefined ? {} : { revision }),
        ...(known ? { known } : {}),
        // Whatever fails here is planned again; what is not wanted any more is cancelled.
        keepPartial: true,
        freeBytes,
        signal,
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
      await record(model, pulled);
    },
    "model.import": async ({ model, source }, { signal, report }) => {
      await makeCache();
      const imported = await importModel({
        cacheDir,
        id: requireId(model),
        source: resolveSource(options.configPath, source),
        signal,
        onProgress: (completed, total) => report({ phase: "importing", completed, total }),
      });
      await record(model, imported);
    },
    "model.remove": removalHandler(options),
  };
}

function requireId(model: string): ModelId {
  const id = parseModelId(model);
  if (!id) throw new GatewayError("invalid_request", `${model} is not of the form OWNER/NAME:TAG`);
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
