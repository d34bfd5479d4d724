// A cache, a loopback hub and a client that pulls from the one into the other.
import { mkdtemp, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { TestContext } from "node:test";
import type { PullResult } from "../../src/cache/download/fetch.ts";
import type { PullProgress } from "../../src/cache/download/progress.ts";
import { type PullOptions, pullModel } from "../../src/cache/download/pull.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { parseModelId } from "../../src/core/ids.ts";
import { createHubClient, type HubClient } from "../../src/hub/client.ts";
import { entriesBelow } from "../../src/state/folder.ts";
import { cleanUp } from "./clean-up.ts";
import { type LoopbackHub, type LoopbackHubOptions, startLoopbackHub } from "./loopback-hub.ts";

export interface Pulling {
  readonly hub: LoopbackHub;
  readonly client: HubClient;
  readonly cacheDir: string;
  readonly progress: PullProgress[];
  pull(id: string, options?: Partial<PullOptions>): Promise<PullResult>;
  /** The code and message of a pull that must fail. */
  refusal(id: string, options?: Partial<PullOptions>): Promise<GatewayError>;
  /** Everything in the cache: `path` of a file, `path -> target` of a link; sorted, folders left out. */
  world(): Promise<string[]>;
  /** Content of a snapshot's file, through its link, of the commit that refs/main names. */
  shown(repo: string, path: string): Promise<Buffer>;
}

export async function startPulling(
  t: TestContext,
  options: LoopbackHubOptions & { readonly token?: string; readonly stallMs?: number } = {},
): Promise<Pulling> {
  const hub = await startLoopbackHub(t, options);
  const cacheDir = await mkdtemp(join(tmpdir(), "gateway-cache-"));
  cleanUp(t, () => rm(cacheDir, { recursive: true, force: true }));
  const client = createHubClient({ endpoint: hub.endpoint, token: options.token, stallMs: options.stallMs });
  cleanUp(t, () => client.close());
  const progress: PullProgress[] = [];

  async function pull(text: string, more: Partial<PullOptions> = {}): Promise<PullResult> {
    const id = parseModelId(text);
    if (!id) throw new Error(`${text} is no model id`);
    return pullModel({
      client,
      cacheDir,
      gateway: "mine",
      id,
      freeBytes: () => Promise.resolve(undefined),
      signal: new AbortController().signal,
      onProgress: (step) => void progress.push(step),
      ...more,
      tuning: { retryMs: 2, ...more.tuning },
    });
  }

  return {
    hub,
    client,
    cacheDir,
    progress,
    pull,
    async refusal(id, more) {
      const outcome = await pull(id, more).catch((error: unknown) => error);
      if (outcome instanceof GatewayError) return outcome;
      throw new Error(`${id} was not refused in our terms`, { cause: outcome });
    },
    async world() {
      const entries = await entriesBelow(cacheDir);
      const lines = entries
        .filter((entry) => !entry.isDirectory())
        .map(async (entry) => {
          const path = join(entry.parentPath, entry.name);
          const target = entry.isSymbolicLink() ? ` -> ${await readlink(path)}` : "";
          return relative(cacheDir, path) + target;
        });
      return (await Promise.all(lines)).sort();
    },
    async shown(repo, path) {
      const folder = join(cacheDir, `models--${repo.replace("/", "--")}`);
      const commit = await readFile(join(folder, "refs", "main"), "utf8");
      return readFile(join(folder, "snapshots", commit, path));
    },
  };
}
