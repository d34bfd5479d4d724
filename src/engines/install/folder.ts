// The folder of installed engines. An installation exists once its folder with a manifest has its final name.
import { mkdir, readdir, readFile, realpath, rename, rm } from "node:fs/promises";
import path from "node:path";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { isJsonObject, parseJson } from "../../core/json.ts";
import { isFull } from "../../state/atomic-file.ts";
import { withLock } from "../../state/lock.ts";
import type { Binaries } from "./build.ts";
import type { EngineName } from "./catalog.ts";

export interface EngineManifest {
  readonly name: EngineName;
  readonly version: string;
  readonly how: "debian" | "release";
  /** Executables of the Debian way contain this path: a folder that was moved or copied counts as none. */
  readonly home: string;
  /** Paths relative to the folder. */
  readonly binaries: Binaries;
  /** ISO 8601. */
  readonly installedAt: string;
}

export interface InstalledEngine extends EngineManifest {
  readonly dir: string;
}

export const manifestName = "engine.json";

/** The complete installation in this folder, or null; one that was moved or copied here is none if it does not run here. */
export async function readInstallation(dir: string): Promise<InstalledEngine | null> {
  const manifest = parseJson(await readFile(path.join(dir, manifestName), "utf8").catch(() => ""));
  if (!isJsonObject(manifest) || !isJsonObject(manifest["binaries"])) return null;
  const engine = { ...(manifest as unknown as EngineManifest), dir };
  // A link to where it belongs is as good as the folder.
  return engine.how !== "debian" || engine.home === (await realpath(dir).catch(() => null)) ? engine : null;
}

/** All complete installations, the newest first. An unreadable folder has none. */
export async function readInstalled(enginesDir: string): Promise<InstalledEngine[]> {
  const names = (await readdir(enginesDir).catch(() => [])).filter((name) => !name.startsWith("."));
  const found = await Promise.all(names.map((name) => readInstallation(path.resolve(enginesDir, name))));
  return found.filter((engine) => engine !== null).toSorted((a, b) => (a.installedAt < b.installedAt ? 1 : -1));
}

/** Runs `work` with an empty folder beside the final ones, one process at a time. `root`: the real path of the engines folder. */
export function withStaging<T>(
  enginesDir: string,
  name: EngineName | "sherpa",
  work: (staging: string, root: string) => Promise<T>,
): Promise<T> {
  return withLock(enginesDir, `.${name}.lock`, async () => {
    const root = await realpath(enginesDir);
    const staging = path.join(root, `.installing-${name}`);
    try {
      await rm(staging, { recursive: true, force: true });
      await mkdir(staging);
      return await work(staging, root);
    } catch (error) {
      if (error instanceof GatewayError || systemCode(error) === undefined) throw error;
      const kind = isFull(error) ? "disk_full" : "engine_failed";
      throw new GatewayError(kind, `cannot write ${enginesDir}: ${String(error)}`, { cause: error });
    } finally {
      await rm(staging, { recursive: true, force: true, maxRetries: 3 });
    }
  });
}

/** Gives `filled`, a folder inside the staging, its final name. What has that name already is incomplete, and makes way. */
export async function putInPlace(filled: string, home: string): Promise<void> {
  await rm(home, { recursive: true, force: true });
  await rename(filled, home);
}

/** Deletes all versions of an engine but the newest two: a running engine may have been started from the second. */
export async function removeOldVersions(root: string, name: EngineName): Promise<void> {
  const versions = (await readInstalled(root)).filter((engine) => engine.name === name);
  for (const { dir } of versions.slice(2)) await rm(dir, { recursive: true, force: true });
}
